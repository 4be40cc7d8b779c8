"""What happens, in seconds after the start: alerts in waves, and silences that begin and end. The same on every run.

Alertmanager notifies of a group when its first alert is GROUP_WAIT old and every INTERVAL from then. The first wave
comes at 0, so these ticks lie at 10, 40, 70 ... and some seconds after; the new groups of later waves keep to that,
too. Windows open and shut 14 s before a tick, silences change 11 s and alerts come 9 s before one: however late a busy
machine is with the messages of a tick, it is clear what held when they were decided.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

ENTITIES, DETECTORS = 1_500, 10
SEVERITIES = ("info", "low", "medium", "high", "critical")
GROUP_WAIT, INTERVAL, REPEAT, LASTS = 10, 30, 83, 120
FOREVER = 86_400
WAVES = {0: 4_000, 31: 2_000, 61: 2_000, 91: 1_000, 121: 1_000}
"""How many alerts come when. One lasts for LASTS, so that the first are over just before the last come."""
ASKED = tuple(range(24, 150, 30))
"""When Alertmanager is asked who receives each alert that lasts."""
END = 121 + LASTS + GROUP_WAIT + INTERVAL
START_SECOND = 34
"""Of a minute, at which a run starts: 86 and 146 are whole minutes then, the only moments at which windows change."""
OPENS, SHUTS = 86, 146
"""The window of receiver `brief`."""


@dataclass(frozen=True)
class Given:
    """An alert, and when it comes."""

    at: int
    labels: Mapping[str, str]

    @property
    def id(self) -> str:
        """Its own, in both systems."""
        return self.labels["alert_id"]

    @property
    def resolves_at(self) -> int:
        """When it counts as over."""
        return self.at + LASTS


@dataclass(frozen=True)
class Silence:
    """One that is made at a moment, for some later one if `starts` says so, and taken back where `ends_by_hand`."""

    matchers: tuple[str, ...]
    made: int = 0
    starts: int = 0
    ends: int = FOREVER
    ends_by_hand: bool = False


SILENCES = (
    Silence(("detector = d7",)),
    Silence(("entity = card:13", "severity = medium")),
    Silence(("detector = d5",), ends=59, ends_by_hand=True),
    Silence(("detector = d0",), starts=29, ends=59),
    Silence(('entity =~ "card:2.*"', "detector != d3"), starts=59, ends=89),
    Silence(("detector = d6",), made=89, starts=89),
    Silence(('detector =~ "d[13]"', 'entity =~ "card:1[0-4].*"'), made=119, starts=119),
)


@cache
def alerts() -> tuple[Given, ...]:
    """All of them, in the order in which they come."""
    chance = random.Random(7)
    times = [at for at, number in WAVES.items() for _ in range(number)]
    return tuple(
        Given(
            at,
            {
                "alert_id": f"a-{number}",
                "detector": f"d{chance.randrange(DETECTORS)}",
                "severity": chance.choice(SEVERITIES),
                "entity": f"card:{chance.randrange(ENTITIES)}",
            },
        )
        for number, at in enumerate(times)
    )


def window(start: float) -> tuple[str, str, str]:
    """First minute, end and zone of the window from OPENS to SHUTS of a run that starts at `start`.

    In the zone where it is noon, as Alertmanager's windows cannot go over midnight.
    """
    opens, shuts = (datetime.fromtimestamp(start + at, UTC) for at in (OPENS, SHUTS))
    behind = opens.hour - 12
    first, end = (f"{moment - timedelta(hours=behind):%H:%M}" for moment in (opens, shuts))
    return first, end, f"Etc/GMT{behind:+d}"

"""Which faults strike a campaign, drawn from its seed alone: the same seed gives the same plan."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from random import Random
from typing import NamedTuple

DETECTORS = {"each_large": "rule", "steady_count": "stateful", "declined_often": "aggregate"}
"""The detectors of a campaign and their kinds; `verify` knows what each should raise."""

FULL_DISK = "full disk of"
JOBS = tuple(DETECTORS)
STAGES = ("upstream", "downstream", "agent", "broker", *JOBS)
TARGETS: Mapping[str, tuple[str, ...]] = {
    "kill": STAGES,
    "kill the JVM of": ("upstream", *JOBS),
    "freeze": STAGES,
    "outage of": ("broker",),
    "restart": ("broker",),
    "network": ("latency", "bandwidth", "slices", "limit", "slow close", "reset", "half close", "silence", "cut"),
    FULL_DISK: ("broker", "jobs", "notifier"),
    "webhook": ("slow", "failing", "hanging", "resetting"),
    "deploy": JOBS,
    "set": JOBS,
    "rollback": JOBS,
    "pause": JOBS,
    "replace": JOBS,
    "records": ("ahead", "behind", "poison"),
}
"""What can be done, and to whom."""

ARCHIVE = "archive"
"""The folder of the tables, in that of the campaign."""
ARCHIVE_SINK, CACHE_SINK, CACHE_SERVER = "sink-archive", "sink-last_authorisation", "cache server"
FILE_INSTANCES = ("files-payments", "files-payments-2")
"""Share the files."""
ON_REQUEST: Mapping[str, Sequence[tuple[str, str]]] = {
    "archive": [
        ("kill", ARCHIVE_SINK),
        ("kill the JVM of", ARCHIVE_SINK),
        ("freeze", ARCHIVE_SINK),
        (FULL_DISK, ARCHIVE),
    ],
    "files": [(kind, name) for kind in ("kill", "freeze") for name in FILE_INSTANCES],
    "cache": [
        ("kill", CACHE_SINK),
        ("freeze", CACHE_SINK),
        ("kill", CACHE_SERVER),
        ("freeze", CACHE_SERVER),
        ("outage of", CACHE_SERVER),
    ],
}
"""What can be done besides, where this runs too. Every other fault is one of these at first, and kills come first."""

CHANGES = ("deploy", "set", "rollback", "pause", "replace")
OFTEN = {"kill": 3}
SECONDS: Mapping[str, tuple[float, float]] = {
    "freeze": (5, 30),
    "outage of": (10, 40),
    "network": (3, 20),
    FULL_DISK: (5, 15),
    "webhook": (5, 20),
}
"""How long a fault lasts that does not end by itself."""

ONCE = ("reset", "half close")

WAIT_SECONDS = (0.5, 4.0)
DOUBLE_SHARE = 0.3
APART_SECONDS = (0.2, 12.0)


class Fault(NamedTuple):
    """`kind` of harm to `target`, `after` seconds into its incident, for `seconds` where it has a length."""

    kind: str
    target: str
    after: float = 0.0
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind} {self.target}" + (f" for {self.seconds:.0f} s" if self.seconds else "")


class Incident(NamedTuple):
    """Faults that strike together, `wait` seconds after the platform was well."""

    wait: float
    faults: tuple[Fault, ...]


def plan(
    seed: int,
    count: int,
    kinds: Sequence[str],
    together: int = 1,
    detectors: Collection[str] = JOBS,
    extras: Iterable[str] = (),
) -> list[Incident]:
    """Incidents of `count` faults in all, of the given `kinds`; each pair of kind and target comes before any repeats.

    With `together` above 1 so many strike within one incident; else one, or two that are worse together. No fault
    strikes a job that is not of `detectors`, nor a sink or a source that is not of `extras`.
    """
    chance = Random(seed)
    deck = _deck(chance, kinds, detectors, extras)
    incidents: list[Incident] = []
    left = count
    while left:
        first = _fault(chance, *next(deck))
        faults = [first]
        if together > 1:
            for _ in range(min(together, left) - 1):
                faults.append(_fault(chance, *next(deck), after=faults[-1].after + chance.uniform(1, 6)))
        elif left > 1 and chance.random() < DOUBLE_SHARE:
            faults.append(_worse(chance, first, detectors))
        incidents.append(Incident(chance.uniform(*WAIT_SECONDS), tuple(faults)))
        left -= len(faults)
    return incidents


def _there(targets: Iterable[str], detectors: Collection[str]) -> list[str]:
    """The targets without the jobs of other detectors."""
    return [target for target in targets if target not in DETECTORS or target in detectors]


def _deck(
    chance: Random, kinds: Sequence[str], detectors: Collection[str], extras: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Pairs of kind and target, for ever; a kind that strikes often has its pairs several times in each round."""
    on_request = [card for extra in extras for card in ON_REQUEST[extra] if card[0] in kinds]
    while True:
        cards = [(kind, target) for kind in kinds for target in _there(TARGETS[kind], detectors)]
        chance.shuffle(cards)
        more = [card for card in cards for _ in range(OFTEN.get(card[0], 1) - 1)]
        chance.shuffle(more)
        chance.shuffle(on_request)
        on_request.sort(key=lambda card: card[0] != "kill")
        yield from (card for pair in zip_longest(on_request, cards) for card in pair if card)
        yield from more


def _fault(chance: Random, kind: str, target: str, after: float = 0.0) -> Fault:
    lasts = kind in SECONDS and target not in ONCE
    return Fault(kind, target, after, chance.uniform(*SECONDS[kind]) if lasts else 0.0)


def _worse(chance: Random, first: Fault, detectors: Collection[str]) -> Fault:
    """A kill that comes where it hurts: within a change, within a recovery, or with the broker."""
    after = chance.uniform(*APART_SECONDS)
    if first.kind in CHANGES:
        return Fault("kill", chance.choice([first.target, "agent", "broker"]), after)
    if first.kind == "kill" and first.target == "broker":
        return Fault("kill", chance.choice(_there(["upstream", "downstream", *JOBS], detectors)), after)
    if first.kind == "webhook":
        return Fault("kill", "downstream", after)
    if first.kind == "kill":
        return Fault("kill", chance.choice([first.target, "broker"]), after)
    return Fault("kill", chance.choice(_there(STAGES, detectors)), after)

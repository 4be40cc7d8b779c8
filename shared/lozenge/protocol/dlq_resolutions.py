"""What was done about dead letters, and which of them still stand.

Nothing is ever deleted: a letter stays in its topic until that forgets it. What was replayed or dropped is written
down in a topic of the app, in the transaction that does it, and all of that under one transactional id for each app:
of two who resolve the letters of one app at the same time the earlier one is fenced, and nothing is done twice.
"""

import getpass
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from lozenge.contracts import topics
from lozenge.contracts.record import Place, places_of
from lozenge.errors import UsageError
from lozenge.kafka.dead_letter_queue import Letter, letters
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics, partitions, topic_id
from lozenge.kafka.topic_reader import retained
from lozenge.kafka.writers import Record, TransactionalWriter

REPLAYED, DROPPED = "replayed", "dropped"


class Resolution(msgspec.Struct, frozen=True):
    """What became of `letters` letters: by partition of their topic, whose id is `topic`, the ranges of their offsets.

    `alerts` were raised on them, and `again` of them failed once more: each of these is a new letter.
    """

    what: str
    topic: str
    ranges: dict[int, list[tuple[int, int]]]
    letters: int
    alerts: int = 0
    again: int = 0
    release: str = ""
    message: str = ""
    by: str = msgspec.field(default_factory=getpass.getuser)
    at: float = msgspec.field(default_factory=time.time)

    def places(self) -> set[Place]:
        """Of all these letters."""
        return {(p, o) for p, ranges in self.ranges.items() for begin, end in ranges for o in range(begin, end)}

    def __str__(self) -> str:
        told = [f"{self.letters} dead letter{'s' if self.letters != 1 else ''}"]
        told += [f"{self.alerts} alerts"] if self.alerts else []
        told += [f"{self.again} failed again"] if self.again else []
        return f"{', '.join(told)}{f'; {self.message}' if self.message else ''}"


def resolutions(kafka: KafkaSettings, app: str) -> list[Resolution]:
    """What was done about the letters of `app`, the oldest first; raises BrokerUnavailable."""
    topic = topics.resolutions(app)
    if topic not in partitions(kafka):
        return []
    return [msgspec.json.decode(m.value() or b"", type=Resolution) for m in retained(kafka, topic, 1)]


def standing(kafka: KafkaSettings, app: str) -> Iterator[Letter]:
    """The letters of `app` about which nothing was done yet; raises as `letters` does."""
    done = {place for line in _in_force(kafka, app) for place in line.places()}
    yield from (letter for letter in letters(kafka, app) if letter.place not in done)


def resolution_of(kafka: KafkaSettings, app: str, place: Place) -> Resolution | None:
    """What was done about the letter at `place`; None if it stands. Raises BrokerUnavailable."""
    return next((line for line in _in_force(kafka, app) if place in line.places()), None)


def _in_force(kafka: KafkaSettings, app: str) -> list[Resolution]:
    """Offsets of a topic that once had the name of the present one say nothing of its letters."""
    lines = resolutions(kafka, app)
    now = topic_id(kafka, topics.dead_letters(app)) if lines else ""
    return [line for line in lines if line.topic == now]


@dataclass(frozen=True)
class Choice:
    """Which of the letters that stand: those at `places`, or with the `key`; all if neither is said."""

    places: tuple[Place, ...] = ()
    key: str | None = None

    def of(self, app: str, found: Iterable[Letter]) -> list[Letter]:
        """They in the order of what they stand for; raises UsageError for a place or a key that none of them has."""
        wanted, key = set(self.places), None if self.key is None else self.key.encode()
        picked = [x for x in found if (not wanted or x.place in wanted) and (key is None or x.key == key)]
        missing = sorted(wanted - {letter.place for letter in picked})
        if missing or (key is not None and not picked):
            where = f"at {places_of(missing)}" if missing else f"under the key {self.key}"
            raise UsageError(
                f"looking for dead letters of {app}: none stands {where}",
                hint=f"`lozenge dlq show {app}` lists those that stand; others were replayed or dropped",
            )
        return sorted(picked, key=lambda letter: (letter.topic, letter.origin, letter.place))


class Resolver:
    """The one who does something about the letters of `app`; once there is another it raises Fenced.

    What `write` is given goes out in one transaction with the line that says so.
    """

    def __init__(self, kafka: KafkaSettings, app: str) -> None:
        self._kafka, self._app = kafka, app
        ensure_topics(kafka, [topics.resolution_topic(app)])
        self._writer = TransactionalWriter(kafka, f"{app}@replay")
        self._writer.fence()  # before anybody looks: what another one does is done, or never will be

    def choose(self, choice: Choice) -> list[Letter]:
        """The letters of `choice`; raises as that does."""
        return choice.of(self._app, standing(self._kafka, self._app))

    def write(self, what: str, resolved: Sequence[Letter], records: Iterable[Record] = (), **told: Any) -> Resolution:
        """Writes `records`, and down that `what` was done about the letters; returns that line."""
        now = topic_id(self._kafka, topics.dead_letters(self._app))
        line = Resolution(what, now, _ranges(resolved), len(resolved), **told)
        written = Record(topics.resolutions(self._app), 0, None, msgspec.json.encode(line))
        self._writer.write([*records, written])
        return line


def replayable(app: str, kind: str, chosen: Sequence[Letter]) -> list[Letter]:
    """Those of the letters of a detector of this kind that can be judged anew; raises UsageError if none can."""
    found = [letter for letter in chosen if letter.origin[1] >= 0]
    if chosen and not found:
        raise UsageError(
            f"replaying dead letters of {app}: they stand for no record, but for what a {chosen[0].stage} failed on",
            hint=f"a mended release makes that anew of the events; then `lozenge dlq drop {app}`",
        )
    if found and kind not in ("rule", "model"):
        first = dict(sorted((letter.origin for letter in found), reverse=True))  # the lowest of each partition
        raise UsageError(
            f"replaying dead letters of {app}: what a {kind} makes of an event depends on those before it",
            hint=f'`lozenge offsets {app} --to "{places_of(sorted(first.items()))}" --state rebuild` judges them in '
            f"their order, with all that came after; then `lozenge dlq drop {app}`",
        )
    return found


def _ranges(resolved: Iterable[Letter]) -> dict[int, list[tuple[int, int]]]:
    ranges: dict[int, list[tuple[int, int]]] = {}
    for partition, offset in sorted(letter.place for letter in resolved):
        found = ranges.setdefault(partition, [])
        begin = found.pop()[0] if found and found[-1][1] == offset else offset
        found.append((begin, offset + 1))
    return ranges

"""What was done about dead letters, which of them a person selects, and which of them can be replayed."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from lozenge.contracts.dead_letters import DeadLetter
from lozenge.contracts.detector_kind import DetectorKind
from lozenge.contracts.record import RecordPosition, format_positions
from lozenge.errors import UsageError
from lozenge.process.user_name import user_name

REPLAYED, DROPPED = "replayed", "dropped"
_MOST = 10_000_000


class Resolution(msgspec.Struct, frozen=True):
    """What was done about `dead_letters` of them: offsets by partition of the topic whose id is `topic_id`.

    A replay raised `alerts`; `failed_again` of its records failed once more, and each of these is a new dead letter.
    """

    action: str
    topic_id: str
    ranges: dict[int, list[tuple[int, int]]]
    dead_letters: int
    alerts: int = 0
    failed_again: int = 0
    release: str = ""
    message: str = ""
    by: str = msgspec.field(default_factory=user_name)
    at: float = msgspec.field(default_factory=time.time)

    def __post_init__(self) -> None:
        """Refuses ranges that hold other than so many dead letters: a row of somebody else."""
        held = sum(end - begin for ranges in self.ranges.values() for begin, end in ranges if begin <= end)
        if held != self.dead_letters or held > _MOST:
            raise ValueError(f"{held} offsets of {self.dead_letters} dead letters, {_MOST} at most")

    def positions(self) -> set[RecordPosition]:
        """Partition and offset of each resolved dead letter."""
        return {(p, o) for p, ranges in self.ranges.items() for begin, end in ranges for o in range(begin, end)}

    def __str__(self) -> str:
        parts = [f"{self.dead_letters} dead letter{'s' if self.dead_letters != 1 else ''}"]
        parts += [f"{self.alerts} alerts"] if self.alerts else []
        parts += [f"{self.failed_again} failed again"] if self.failed_again else []
        return f"{', '.join(parts)}{f'; {self.message}' if self.message else ''}"


@dataclass(frozen=True)
class DeadLetterSelection:
    """Which unresolved dead letters are meant: those at `positions`, or with the `key`; all if neither is given."""

    positions: tuple[RecordPosition, ...] = ()
    key: str | None = None

    def of(self, app: str, unresolved: Iterable[DeadLetter]) -> list[DeadLetter]:
        """The selected ones in the order of their origins; raises UsageError for a position or key that none has."""
        wanted, key = set(self.positions), None if self.key is None else self.key.encode()
        selected = [x for x in unresolved if (not wanted or x.position in wanted) and (key is None or x.key == key)]
        missing = sorted(wanted - {dead_letter.position for dead_letter in selected})
        if missing or (key is not None and not selected):
            where = f"at {format_positions(missing)}" if missing else f"with the key {self.key}"
            raise UsageError(
                f"looking for dead letters of {app}: none is unresolved {where}",
                hint=f"`lozenge dlq show {app}` lists the unresolved ones; others were replayed or dropped",
            )
        return sorted(selected, key=lambda dead_letter: (dead_letter.topic, dead_letter.origin, dead_letter.position))


def replayable(app: str, kind: DetectorKind, selected: Sequence[DeadLetter]) -> list[DeadLetter]:
    """Those of the dead letters of a detector of this kind that can be replayed; raises UsageError if none can."""
    found = [dead_letter for dead_letter in selected if dead_letter.origin[1] >= 0]
    if selected and not found:
        raise UsageError(
            f"replaying dead letters of {app}: no record failed, but a {selected[0].stage}",
            hint=f"a fixed release repeats that from the events; then `lozenge dlq drop {app}`",
        )
    if found and not kind.stateless:
        first = dict(
            sorted((dead_letter.origin for dead_letter in found), reverse=True)
        )  # the lowest of each partition
        raise UsageError(
            f"replaying dead letters of {app}: the result of a {kind} depends on the events before",
            hint=f'`lozenge offsets {app} --to "{format_positions(sorted(first.items()))}" --state rebuild` '
            f"reprocesses them in order, with all that came after; then `lozenge dlq drop {app}`",
        )
    return found


def ranges_of(positions: Iterable[RecordPosition]) -> dict[int, list[tuple[int, int]]]:
    """Offsets by partition as ranges, each from its first offset to before its end."""
    ranges: dict[int, list[tuple[int, int]]] = {}
    for partition, offset in sorted(positions):
        found = ranges.setdefault(partition, [])
        begin = found.pop()[0] if found and found[-1][1] == offset else offset
        found.append((begin, offset + 1))
    return ranges

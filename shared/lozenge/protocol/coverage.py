"""Which release processed which events. A segment is written where that changes, so nothing is written per batch.

The segments of a detector are in a topic of its own. Each is written in the transaction that claims or moves the
offsets that it names. The newest interval ends at the committed offsets of the consumer group.
"""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

import msgspec

from lozenge.contracts.record import Record

STARTED, RECONFIGURED, OFFSETS_RESET, BACKFILLED = "started", "reconfigured", "offsets-reset", "backfilled"
"""Reasons of a segment."""


class Versions(msgspec.Struct, frozen=True):
    """What a release processes events with: the digest of its settings, and the version of each table by name."""

    settings: str
    tables: dict[str, str] = {}


class CoverageSegment(msgspec.Struct, frozen=True):
    """From `since` on, by partition of the input, `release` processes events with the settings of `digest`.

    `tables` are the versions of its reference tables by name.

    The segments before end at `ended`. A backfill ends at `until`. `input_id` is the id of the topic that is
    processed, and `topic` its name where an app reads several, as upstream does.
    After a reset of offsets no release processes anything yet: `release` is "". With `shared` several
    instances process the detector, each with a writer for each of its partitions.
    """

    reason: str
    release: str
    digest: str
    generation: int
    ended: dict[int, int]
    since: dict[int, int]
    until: dict[int, int] = {}
    input_id: str = ""
    by: str = ""
    shared: bool = False
    topic: str = ""
    at: float = msgspec.field(default_factory=time.time)
    tables: dict[str, str] = {}

    @property
    def versions(self) -> Versions:
        """What the release processes events with."""
        return Versions(self.digest, self.tables)

    def record(self, topic: str) -> Record:
        """The segment as a record of the coverage topic."""
        return Record(topic, 0, None, msgspec.json.encode(self))


class Interval(msgspec.Struct, frozen=True, order=True):
    """The offsets from `begin` to before `end` of one partition. With `open`, its end is the committed offset.

    A `generation` of 0 means several. `tables` are names and versions, in the order of the names.
    """

    partition: int
    begin: int
    end: int
    release: str = ""
    digest: str = ""
    generation: int = 0
    open: bool = False
    tables: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        """The number of its offsets."""
        return self.end - self.begin


def newest(segments: Sequence[CoverageSegment]) -> CoverageSegment | None:
    """The newest segment that moved the detector, as a backfill does not; None if there is none.

    Its `since` also has the partitions that only earlier segments name.
    """
    moves = [segment for segment in segments if segment.reason != BACKFILLED]
    if not moves:
        return None
    same = [segment.since for segment in moves if segment.input_id == moves[-1].input_id]
    return msgspec.structs.replace(moves[-1], since={p: o for since in same for p, o in since.items()})


def processed_offsets(
    offsets: Mapping[int, int], missing: Collection[int], known: CoverageSegment | None
) -> dict[int, int]:
    """How far a detector has processed: the group's `offsets`, or what `known` recorded where those are `missing`."""
    if known is None:
        return dict(offsets)
    return {p: known.since.get(p, o) if p in missing else o for p, o in offsets.items()}


def intervals(segments: Iterable[CoverageSegment], committed: Mapping[int, int]) -> list[Interval]:
    """Which release processed what, in the order of partition and offset; open intervals end at `committed`.

    Only of the newest input topic: offsets of an earlier topic of the same name mean other events. The first interval
    of a partition is kept even if it is empty, because processing was to begin there.
    """
    found: list[Interval] = []
    current: dict[int, Interval] = {}
    topic = ""
    for segment in segments:
        if segment.input_id != topic:
            topic, found, current = segment.input_id, [], {}
        tables = tuple(sorted(segment.tables.items()))
        for partition, begin in segment.since.items():
            new = Interval(partition, begin, begin, segment.release, segment.digest, segment.generation, True, tables)
            if partition in segment.until:
                found.append(msgspec.structs.replace(new, end=segment.until[partition], open=False))
                continue
            if (before := current.get(partition)) is not None:
                found.append(msgspec.structs.replace(before, end=segment.ended.get(partition, begin), open=False))
            current[partition] = new
    found += [msgspec.structs.replace(i, end=max(i.begin, committed.get(p, i.begin))) for p, i in current.items()]
    began = dict[int, int]()
    for each in found:
        if each.release:
            began.setdefault(each.partition, each.begin)
    return list(_joined(i for i in sorted(found) if i.release and (i.size or i.open or i.begin == began[i.partition])))


def _joined(ordered: Iterable[Interval]) -> Iterator[Interval]:
    """Restarts of one release with the same settings and tables are one interval of several generations."""
    last: Interval | None = None
    for each in ordered:
        if last is not None and _same(last, each) and last.end == each.begin:
            one = each.generation if each.generation == last.generation else 0
            last = msgspec.structs.replace(each, begin=last.begin, generation=one)
            continue
        if last is not None:
            yield last
        last = each
    if last is not None:
        yield last


def _same(one: Interval, other: Interval) -> bool:
    return (one.partition, one.release, one.digest, one.tables) == (
        other.partition,
        other.release,
        other.digest,
        other.tables,
    )


def gaps(covered: Sequence[Interval]) -> list[Interval]:
    """What was not processed and will not be, though earlier events were; in the order of `intervals`.

    Events after an open interval are still to be processed.
    """
    next_ = {i.partition: i.end for i in covered if i.open}
    return [Interval(p, end, begin) for p, end, begin in _seams(covered) if end < begin <= next_.get(p, begin)]


def backfill_gaps(segments: Sequence[CoverageSegment], covered: Sequence[Interval]) -> list[Interval]:
    """The parts of gaps that a start has left for a backfill; a reset of offsets skips events on purpose."""
    starts = [
        segment for segment in segments if segment.reason == STARTED and segment.input_id == segments[-1].input_id
    ]
    jumps = [(p, segment.ended.get(p, o), o) for segment in starts for p, o in segment.since.items()]
    parts = (
        Interval(gap.partition, max(gap.begin, ended), min(gap.end, since))
        for gap in gaps(covered)
        for partition, ended, since in jumps
        if partition == gap.partition
    )
    return sorted(part for part in parts if part.size > 0)


def overlaps(covered: Sequence[Interval]) -> list[Interval]:
    """What was processed more than once, in the order of `intervals`."""
    return [Interval(p, begin, end) for p, end, begin in _seams(covered) if begin < end]


def _seams(covered: Sequence[Interval]) -> Iterator[tuple[int, int, int]]:
    """Partition, the end of the intervals before, and where the next one begins or stops overlapping them."""
    for partition, found in groupby(covered, key=attrgetter("partition")):
        reach: int | None = None
        for each in found:
            if reach is not None and each.begin > reach:
                yield partition, reach, each.begin
            elif reach is not None and each.begin < reach and each.size:
                yield partition, min(reach, each.end), each.begin
            reach = max(reach or 0, each.end)


def covering(covered: Iterable[Interval], partition: int, offset: int) -> list[Interval]:
    """Every interval that contains the event at `offset`."""
    return [i for i in covered if i.partition == partition and i.begin <= offset < i.end]

"""Which release judged which events: a line wherever that changes, so that nothing is written per batch.

The lines of a detector lie in a topic of its own, each in the transaction that claims or moves the very offsets
that it speaks of. The end of the newest interval is what the consumer group has committed.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

import msgspec

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.topic_reader import retained
from lozenge.kafka.writers import Record

START, SETTINGS, MOVED, FILLED = "start", "settings", "moved", "filled"


class CoverageSegment(msgspec.Struct, frozen=True):
    """From `since` on, by partition of the input, `release` judges under the settings `digest`.

    `ended` is where that ends which was so before, and `until`, of what was filled in later, where this ends. `input`
    is the id of the topic that it judges. What was moved by hand is nobody's yet: its `release` is "". One that is
    `shared` is one of several instances, each with a writer for each of its partitions.
    """

    what: str
    release: str
    digest: str
    generation: int
    ended: dict[int, int]
    since: dict[int, int]
    until: dict[int, int] = {}
    input: str = ""
    by: str = ""
    shared: bool = False
    at: float = msgspec.field(default_factory=time.time)

    def record(self, topic: str) -> Record:
        """It as a record of the coverage topic."""
        return Record(topic, 0, None, msgspec.json.encode(self))


class Interval(msgspec.Struct, frozen=True, order=True):
    """The offsets from `begin` to before `end` of one partition. `open`: its end grows with what is committed.

    A `generation` of 0 stands for several.
    """

    partition: int
    begin: int
    end: int
    release: str = ""
    digest: str = ""
    generation: int = 0
    open: bool = False

    @property
    def size(self) -> int:
        """How many offsets it has."""
        return self.end - self.begin


def openings(kafka: KafkaSettings, topic: str) -> list[CoverageSegment]:
    """The lines of a coverage topic, the oldest first; none if there is no such topic. Raises BrokerUnavailable."""
    if topic not in partitions(kafka):
        return []
    return [msgspec.json.decode(m.value() or b"", type=CoverageSegment) for m in retained(kafka, topic, 1)]


def newest(lines: Sequence[CoverageSegment]) -> CoverageSegment | None:
    """The line that says where its jobs stand; None if there is none. What was filled in moves nobody.

    Its `since` also has the partitions of which only earlier lines tell.
    """
    moves = [line for line in lines if line.what != FILLED]
    if not moves:
        return None
    same = [line.since for line in moves if line.input == moves[-1].input]
    return msgspec.structs.replace(moves[-1], since={p: o for since in same for p, o in since.items()})


def intervals(lines: Iterable[CoverageSegment], committed: Mapping[int, int]) -> list[Interval]:
    """What was judged by whom, in the order of partition and offset; `committed` ends what is still open.

    Only of the newest topic: offsets of one that was there before under its name say nothing of this one's. The first
    interval of a partition is there even if it is empty: from it on somebody was to judge.
    """
    found: list[Interval] = []
    current: dict[int, Interval] = {}
    topic = ""
    for line in lines:
        if line.input != topic:
            topic, found, current = line.input, [], {}
        for partition, begin in line.since.items():
            new = Interval(partition, begin, begin, line.release, line.digest, line.generation, open=True)
            if partition in line.until:
                found.append(msgspec.structs.replace(new, end=line.until[partition], open=False))
                continue
            if (before := current.get(partition)) is not None:
                found.append(msgspec.structs.replace(before, end=line.ended.get(partition, begin), open=False))
            current[partition] = new
    found += [msgspec.structs.replace(i, end=max(i.begin, committed.get(p, i.begin))) for p, i in current.items()]
    began = dict[int, int]()
    for each in found:
        if each.release:
            began.setdefault(each.partition, each.begin)
    return list(_joined(i for i in sorted(found) if i.release and (i.size or i.open or i.begin == began[i.partition])))


def _joined(ordered: Iterable[Interval]) -> Iterator[Interval]:
    """Restarts of one release under the same settings are one interval, of no one generation."""
    last: Interval | None = None
    for each in ordered:
        same = last is not None and (last.partition, last.release, last.digest) == (
            each.partition,
            each.release,
            each.digest,
        )
        if last is not None and same and last.end == each.begin:
            one = each.generation if each.generation == last.generation else 0
            last = msgspec.structs.replace(each, begin=last.begin, generation=one)
            continue
        if last is not None:
            yield last
        last = each
    if last is not None:
        yield last


def gaps(covered: Sequence[Interval]) -> list[Interval]:
    """What nobody judged, nor will, though earlier events were judged, in the order of `intervals`.

    What lies behind an open interval is still to be judged.
    """
    next_ = {i.partition: i.end for i in covered if i.open}
    return [Interval(p, end, begin) for p, end, begin in _seams(covered) if end < begin <= next_.get(p, begin)]


def left_behind(lines: Sequence[CoverageSegment], covered: Sequence[Interval]) -> list[Interval]:
    """Those gaps, or parts of gaps, that a start has made; what was moved by hand is somebody's will."""
    starts = [line for line in lines if line.what == START and line.input == lines[-1].input]
    jumps = [(p, line.ended.get(p, o), o) for line in starts for p, o in line.since.items()]
    parts = (
        Interval(gap.partition, max(gap.begin, ended), min(gap.end, since))
        for gap in gaps(covered)
        for partition, ended, since in jumps
        if partition == gap.partition
    )
    return sorted(part for part in parts if part.size > 0)


def overlaps(covered: Sequence[Interval]) -> list[Interval]:
    """What was judged more than once, in the order of `intervals`."""
    return [Interval(p, begin, end) for p, end, begin in _seams(covered) if begin < end]


def _seams(covered: Sequence[Interval]) -> Iterator[tuple[int, int, int]]:
    """Partition, how far it is covered by the intervals before, and where the next one begins or overlaps no more."""
    for partition, found in groupby(covered, key=attrgetter("partition")):
        reach: int | None = None
        for each in found:
            if reach is not None and each.begin > reach:
                yield partition, reach, each.begin
            elif reach is not None and each.begin < reach and each.size:
                yield partition, min(reach, each.end), each.begin
            reach = max(reach or 0, each.end)


def judges(covered: Iterable[Interval], partition: int, offset: int) -> list[Interval]:
    """Every interval that the event at `offset` lies in."""
    return [i for i in covered if i.partition == partition and i.begin <= offset < i.end]

"""Which versions of lists and platform tables events were processed with, by the coverage of their detector. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from lozenge.job.query.poison_search import Ranges
from lozenge.protocol.content_version import changed_of
from lozenge.protocol.coverage import Interval, covering

_Versions = tuple[tuple[str, str], ...]
"""Topics and their versions, in the order of the topics."""


class RangesOfVersions(NamedTuple):
    """Offsets by partition that were processed with these versions of topics; none for those that nothing recorded."""

    versions: Mapping[str, str]
    ranges: Ranges


def by_version(ranges: Ranges, covered: Sequence[Interval], topics: Mapping[str, str]) -> list[RangesOfVersions]:
    """All of `ranges` in parts of one set of versions, the offsets of each partition in their order.

    `topics` are those of lists and platform tables, by the table that a detector declares. Offsets that no release has
    processed belong to the version before them.
    """
    pieces = {p: _pieces(p, begin, end, covered, topics) for p, (begin, end) in ranges.items()}
    found: list[RangesOfVersions] = []
    for turn in range(max(map(len, pieces.values()), default=0)):
        together: dict[_Versions, dict[int, tuple[int, int]]] = {}
        for partition, parts in pieces.items():
            if turn < len(parts):
                versions, begin, end = parts[turn]
                together.setdefault(versions, {})[partition] = (begin, end)
        found += [RangesOfVersions(dict(versions), part) for versions, part in together.items()]
    return found


def _pieces(
    partition: int, begin: int, end: int, covered: Sequence[Interval], topics: Mapping[str, str]
) -> list[tuple[_Versions, int, int]]:
    mine = [interval for interval in covered if interval.partition == partition]
    seams = {offset for interval in mine for offset in (interval.begin, interval.end) if begin < offset < end}
    joined: list[tuple[_Versions, int, int]] = []
    for start, stop in pairwise(sorted({begin, end, *seams})):
        versions = _versions(partition, start, mine, topics)
        if joined and joined[-1][0] == versions:
            joined[-1] = (versions, joined[-1][1], stop)
        else:
            joined.append((versions, start, stop))
    return joined


def _versions(partition: int, offset: int, mine: Sequence[Interval], topics: Mapping[str, str]) -> _Versions:
    """Of events that were processed twice, those of the later one; in a gap, those before it."""
    there = covering(mine, partition, offset) or [interval for interval in mine if interval.end <= offset]
    return tuple(_of_topics(max(there, key=lambda each: (each.begin, each.end)), topics)) if there else ()


def _of_topics(interval: Interval, topics: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for table, version in interval.tables:
        with suppress(ValueError):  # the table was a file then
            if table in topics and changed_of(version) >= 0:
                yield topics[table], version

"""When a topic is committed, and which offsets a commit has."""

from collections.abc import Mapping
from dataclasses import dataclass

from lozenge.archive.settings import MEGABYTE

FIRST_ROW_BYTES = 1_000.0
"""What a row is taken to need before any was seen."""
MOST_OFFSETS = 2_000_000


@dataclass(frozen=True, slots=True)
class CommitLimits:
    """A commit has at most `megabytes` of rows, and comes `seconds` after the one before at the latest."""

    seconds: float
    megabytes: int

    def offsets(self, row_bytes: float) -> int:
        """How many offsets fill a commit, with rows of this size in memory."""
        return max(1, min(MOST_OFFSETS, int(self.megabytes * MEGABYTE / max(1.0, row_bytes))))


def next_ranges(
    starts: Mapping[int, int], ends: Mapping[int, int], limits: CommitLimits, row_bytes: float, waited: float
) -> dict[int, tuple[int, int]]:
    """The offsets of the next commit by partition; none while it is neither full nor due.

    `waited` are the seconds since the last commit. A full commit takes equal parts of all partitions that have more.
    """
    left = {p: end - starts[p] for p, end in ends.items() if end > starts[p]}
    most = limits.offsets(row_bytes)
    if not left or (sum(left.values()) < most and waited < limits.seconds):
        return {}
    taken = shares(left, most)
    return {p: (starts[p], starts[p] + count) for p, count in taken.items() if count}


def shares(left: Mapping[int, int], most: int) -> dict[int, int]:
    """`most` divided among partitions with so much `left`: equal parts, and what some do not need goes to others."""
    taken, rest = dict[int, int](), most
    for number, (partition, count) in enumerate(sorted(left.items(), key=lambda each: each[1])):
        taken[partition] = min(count, -(-rest // (len(left) - number)))
        rest -= taken[partition]
    return taken


def row_size(before: float, rows: int, size: int) -> float:
    """The bytes of a row, after a commit of so many rows with this `size`."""
    return size / rows if rows else before

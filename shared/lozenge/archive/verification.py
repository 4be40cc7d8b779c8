"""Whether a table has exactly the records that its topic has: none missing, none twice, none of its own.

Of each partition, the offsets in the table are compared with those that a reader of committed records sees, up to the
end that the table has committed. Transaction markers and aborted records are offsets that such a reader never sees.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

NAMED = 5
"""How many offsets a problem names."""


@dataclass(frozen=True)
class PartitionProof:
    """What was found of one partition, up to its `end`: how many records have a row, or are dead letters of the sink.

    `unchecked` rows are of records that the topic no longer has; they can only be checked for repeats. The offsets
    that are `missing`, `twice` or `foreign` (no record has them) are a failed proof.
    """

    topic: str
    partition: int
    end: int
    rows: int = 0
    dead_letters: int = 0
    unchecked: int = 0
    missing: Sequence[int] = ()
    twice: Sequence[int] = ()
    foreign: Sequence[int] = ()

    @property
    def clean(self) -> bool:
        """Whether nothing is missing, twice or foreign."""
        return not (self.missing or self.twice or self.foreign)

    @property
    def problems(self) -> list[str]:
        """What is wrong, for a person."""
        found = {"missing": self.missing, "twice": self.twice, "not in the topic": self.foreign}
        return [f"{len(offsets)} {what}: {_some(offsets)}" for what, offsets in found.items() if offsets]


@dataclass
class _Counts:
    rows: int = 0
    dead_letters: int = 0
    unchecked: int = 0
    missing: list[int] = field(default_factory=list)
    twice: list[int] = field(default_factory=list)
    foreign: list[int] = field(default_factory=list)


def proof(
    topic: str,
    partition: int,
    end: int,
    archived: Iterable[int],
    records: Iterable[int],
    earliest: int,
    dead: frozenset[int] = frozenset(),
) -> PartitionProof:
    """The proof of one partition: offsets of `archived` rows and of `records`, both in rising order, compared to `end`.

    The topic has nothing before `earliest` any more. `dead` are the offsets of records that are dead letters of the
    sink.
    """
    counts = _Counts()
    seen = _once(archived, counts)
    row = next(seen, None)
    while row is not None and row < earliest:
        counts.unchecked += 1
        row = next(seen, None)
    for record in records:
        if record >= end:
            break
        while row is not None and row < record:
            counts.foreign.append(row)
            row = next(seen, None)
        if row == record:
            counts.rows += 1
            row = next(seen, None)
        elif record in dead:
            counts.dead_letters += 1
        else:
            counts.missing.append(record)
    counts.foreign += [row, *seen] if row is not None else []
    return PartitionProof(topic, partition, end, **vars(counts))


def _once(offsets: Iterable[int], counts: _Counts) -> Iterator[int]:
    before: int | None = None
    for offset in offsets:
        if offset == before:
            counts.twice.append(offset)
        else:
            yield offset
        before = offset


def _some(offsets: Sequence[int]) -> str:
    named = ", ".join(map(str, offsets[:NAMED]))
    return f"{named} and {len(offsets) - NAMED} more" if len(offsets) > NAMED else named


def totals(proofs: Iterable[PartitionProof]) -> Mapping[str, int]:
    """The sums over partitions."""
    found = dict.fromkeys(("rows", "dead_letters", "unchecked", "missing", "twice", "foreign"), 0)
    for each in proofs:
        for name in ("rows", "dead_letters", "unchecked"):
            found[name] += getattr(each, name)
        for name in ("missing", "twice", "foreign"):
            found[name] += len(getattr(each, name))
    return found

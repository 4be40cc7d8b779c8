"""Evaluates a detector over bounded ranges of its input, in chunks, from empty state."""

import sys
from collections.abc import Iterable, Iterator

import pyarrow as pa

from lozenge.contracts.detector_kind import DetectorKind
from lozenge.errors import DetectorError, LozengeError, first_line
from lozenge.job.batch_result import BatchResult, joined
from lozenge.job.operators.operator import Operator
from lozenge.job.query.poison_search import FailureLimit, Ranges, find_poison, stop_at_too_many
from lozenge.job.query.query_builder import QueryBuilder
from lozenge.spark.avro import words_of

CHUNK_OFFSETS = 200_000
"""Offsets that are evaluated at a time, so that long ranges need no more memory than short ones."""


def evaluate(
    builder: QueryBuilder,
    kind: DetectorKind,
    ranges: Ranges,
    partitions: int,
    limit: FailureLimit = stop_at_too_many,
    *,
    parts: Iterable[Ranges] | None = None,
) -> BatchResult:
    """The result over `ranges` of a topic with so many `partitions`, in chunks or in the given `parts` of them.

    Where Spark counts, all ranges are evaluated at once and without a watermark, so every alert is emitted. Raises
    DetectorError if more records fail than `limit` permits.
    """
    results: list[BatchResult] = []
    first: Operator | None = None
    for part in parts or chunks(ranges, sys.maxsize if kind.state_in_checkpoint else CHUNK_OFFSETS):
        operator, batch = _collected(builder, part, partitions, limit)
        first = first or operator  # it holds the state
        results.append(first.process(batch))
    return joined(results, builder.events.excluded)


def _collected(
    builder: QueryBuilder, ranges: Ranges, partitions: int, limit: FailureLimit
) -> tuple[Operator, pa.Table]:
    """The operator of `ranges` and its rows, without the records that fail."""
    while True:
        operator = builder.bounded_operator(ranges, partitions)
        try:
            return operator, operator.frame().toArrow()
        except LozengeError:
            raise
        except Exception as error:  # whatever the author's code or Spark raises
            if words_of(str(error)) and builder.events.exclude_malformed(ranges):
                continue
            if not (found := find_poison(ranges, builder.evaluate, limit)):
                raise DetectorError(
                    f"processing retained events: they fail together, but none fails alone: {first_line(error)}",
                    hint="try again; if it fails again, the detector's own tests may show the cause",
                ) from error
            for record in found:
                builder.exclude(record)


def chunks(ranges: Ranges, size: int) -> Iterator[Ranges]:
    """`ranges` in order, at most about `size` offsets of all partitions at a time."""
    left = dict(ranges)
    step = max(1, size // max(1, len(ranges)))
    while left:
        yield {p: (start, min(start + step, end)) for p, (start, end) in left.items()}
        left = {p: (start + step, end) for p, (start, end) in left.items() if start + step < end}


def size(ranges: Ranges) -> int:
    """How many offsets `ranges` hold."""
    return sum(end - start for start, end in ranges.values())

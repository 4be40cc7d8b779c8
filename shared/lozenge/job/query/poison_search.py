"""Finds the records that make a batch fail, by halving its offset ranges.

The author's code runs as Spark expressions over many records at once, so an error names no record. The failing ranges
are evaluated again as bounded reads, until each failure is a single offset. The job then sends these records to the
dead-letter topic and runs the batch without them.
"""

from collections.abc import Callable, Sequence

from lozenge.contracts.record import format_positions
from lozenge.errors import DetectorError, Flood, Retryable, first_line
from lozenge.job.batch_result import FailedRecord, FailureWithoutRecord

MAX_FAILURES = 100
"""More failed records in one batch mean that the code is at fault, not the records."""
CONCLUSIVE_FAILURES = 10
"""So many failed records with fewer good ones mean the same."""
NAMED = 5
"""How many failed records an error names by partition and offset."""

Ranges = dict[int, tuple[int, int]]
"""First offset (inclusive) and last offset (exclusive) by partition."""
Failures = Sequence[FailedRecord | FailureWithoutRecord]
FailureLimit = Callable[[Failures, int], None]
"""Raises if there are too many failures for the number of records that were evaluated."""


def stop_at_too_many(failures: Failures, evaluated: int) -> None:
    """Raises Flood if so many of the evaluated records failed that the code must be at fault."""
    if len(failures) > MAX_FAILURES or len(failures) >= CONCLUSIVE_FAILURES > evaluated - len(failures):
        first, positions = failures[0].error, sorted({f.position for f in failures if f.position is not None})
        at = format_positions(positions[:NAMED])
        more = f" and {len(positions) - NAMED} more" if len(positions) > NAMED else ""
        raise Flood(
            f"processing a batch: the detector raises on {len(failures)} of the first {evaluated} records, "
            f"first with {type(first).__name__}: {first_line(first)}{f'; at {at}{more}' if at else ''}",
            hint="nothing was committed; fix the detector, it resumes at the same offsets",
        )


def no_limit(failures: Failures, evaluated: int) -> None:
    """For records that have failed before: any number of them may fail again."""


def find_poison(
    ranges: Ranges, evaluate: Callable[[Ranges], None], limit: FailureLimit = stop_at_too_many
) -> list[FailedRecord]:
    """Every offset in `ranges` on which `evaluate` raises; empty if the failure does not occur again.

    It costs about 2 log2(batch) evaluations per failed record. A record is reported only if it fails twice, while JVM
    and broker are healthy: DetectorError and Retryable from `evaluate` end the search. Raises what `limit` raises.
    """
    found: list[FailedRecord] = []
    good = 0
    pending: list[tuple[int, int, int]] = []
    if _error_of(ranges, evaluate) is not None:
        pending = [(p, start, end) for p, (start, end) in sorted(ranges.items(), reverse=True) if end > start]
    while pending:
        partition, start, end = pending.pop()
        error = _error_of({partition: (start, end)}, evaluate)
        if error is None:
            good += end - start
        elif end - start > 1:
            middle = (start + end) // 2
            pending += [(partition, middle, end), (partition, start, middle)]
        elif (error := _error_of({partition: (start, end)}, evaluate)) is None:
            good += 1
        else:
            found.append(FailedRecord(partition, start, error))
            limit(found, len(found) + good)
    return found


def _error_of(ranges: Ranges, evaluate: Callable[[Ranges], None]) -> Exception | None:
    try:
        evaluate(ranges)
    except (DetectorError, Retryable):
        raise
    except Exception as error:  # whatever the author's code or Spark raises
        return error
    return None

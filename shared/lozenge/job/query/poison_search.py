"""DraftAlert the records that make a batch fail, by halving its offset ranges.

Author code runs as Spark expressions over many records at once, so an error names none of them. The
failing ranges are evaluated again as bounded reads until each failure is a single offset; then the job
puts those records aside as dead letters and runs the batch without them.
"""

from collections.abc import Callable, Sequence

from lozenge.contracts.record import places_of
from lozenge.errors import DetectorError, Flood, Retryable
from lozenge.job.batch_result import FailedRecord, FailureWithoutRecord

MAX_POISON = 100
"""More failing records than this in one batch mean that the code is at fault, not the records."""
ENOUGH_TO_TELL = 10
"""So many failing records, with hardly a good one between them, mean the same."""
NAMED = 5
"""So many of them are named by their place."""

Ranges = dict[int, tuple[int, int]]
Refusal = Callable[[Sequence[FailedRecord | FailureWithoutRecord], int], None]
"""Raises if what was found, of so many records looked at, is too much to go on."""


def refuse_too_many(found: Sequence[FailedRecord | FailureWithoutRecord], looked_at: int) -> None:
    """Raises Flood if so many of the records looked at failed that the code must be at fault."""
    if len(found) > MAX_POISON or len(found) >= ENOUGH_TO_TELL > looked_at - len(found):
        first, positions = found[0].error, sorted({f.position for f in found if f.position is not None})
        at = places_of(positions[:NAMED])
        more = f" and {len(positions) - NAMED} more" if len(positions) > NAMED else ""
        raise Flood(
            f"judging a batch: the detector raises on {len(found)} of the first {looked_at} records looked at, "
            f"first with {type(first).__name__}: {first_line(first)}{f'; at {at}{more}' if at else ''}",
            hint="nothing was committed; mend the detector, it goes on at the same offsets",
        )


def refuse_nothing(found: Sequence[FailedRecord | FailureWithoutRecord], looked_at: int) -> None:
    """For records that have failed before: every one that fails again is found."""


def find_poison(
    ranges: Ranges, evaluate: Callable[[Ranges], None], refuse: Refusal = refuse_too_many
) -> list[FailedRecord]:
    """Every offset in `ranges` on which `evaluate` raises; empty if the failure does not come back.

    Costs about 2 log2(batch) evaluations per poisoned record. One that fails alone is tried once more before it is
    believed. Raises Flood when the code rather than the records must be at fault, as far as `refuse` says so, and what
    `evaluate` raises if that is Retryable: then neither is.
    """
    found: list[FailedRecord] = []
    good = 0
    pending: list[tuple[int, int, int]] = []
    if _fails(ranges, evaluate) is not None:
        pending = [(p, start, end) for p, (start, end) in sorted(ranges.items(), reverse=True) if end > start]
    while pending:
        partition, start, end = pending.pop()
        error = _fails({partition: (start, end)}, evaluate)
        if error is None:
            good += end - start
        elif end - start > 1:
            middle = (start + end) // 2
            pending += [(partition, middle, end), (partition, start, middle)]
        elif (error := _fails({partition: (start, end)}, evaluate)) is None:
            good += 1
        else:
            found.append(FailedRecord(partition, start, error))
            refuse(found, len(found) + good)
    return found


def first_line(error: BaseException) -> str:
    """The sentence of an error without Spark's plan and stack below it."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _fails(ranges: Ranges, evaluate: Callable[[Ranges], None]) -> Exception | None:
    try:
        evaluate(ranges)
    except (DetectorError, Retryable):
        raise
    except Exception as error:  # whatever the author's code or Spark raises
        return error
    return None

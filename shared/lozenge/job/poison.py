"""Finding the records that make a batch fail, by halving its offset ranges.

Author code runs as Spark expressions over many records at once, so an error names none of them. The
failing ranges are evaluated again as bounded reads until each failure is a single offset; then the job
puts those records aside as dead letters and runs the batch without them.
"""

from collections.abc import Callable, Sequence

from lozenge.errors import DetectorError
from lozenge.job.output import Poisoned

MAX_POISON = 100
"""More failing records than this in one batch mean that the code is at fault, not the records."""
ENOUGH_TO_TELL = 10
"""So many failing records, with hardly a good one between them, mean the same."""

Ranges = dict[int, tuple[int, int]]


def find_poison(ranges: Ranges, evaluate: Callable[[Ranges], None]) -> list[Poisoned]:
    """Every offset in `ranges` on which `evaluate` raises; empty if the failure does not come back.

    Costs about 2 log2(batch) evaluations per poisoned record. Raises DetectorError when the code rather
    than the records must be at fault.
    """
    found: list[Poisoned] = []
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
        else:
            found.append(Poisoned(partition, start, error))
            refuse_too_many([poison.error for poison in found], len(found) + good)
    return found


def refuse_too_many(errors: Sequence[Exception], looked_at: int) -> None:
    """Raises DetectorError if so many of the records looked at failed that the code must be at fault."""
    if len(errors) > MAX_POISON or len(errors) >= ENOUGH_TO_TELL > looked_at - len(errors):
        raise DetectorError(
            f"judging a batch: the detector raises on {len(errors)} of the first {looked_at} records looked at, "
            f"first with {type(errors[0]).__name__}: {first_line(errors[0])}",
            hint="nothing was committed; mend the detector, it goes on at the same offsets",
        )


def first_line(error: BaseException) -> str:
    """The sentence of an error without Spark's plan and stack below it."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _fails(ranges: Ranges, evaluate: Callable[[Ranges], None]) -> Exception | None:
    try:
        evaluate(ranges)
    except DetectorError:
        raise
    except Exception as error:  # whatever the author's code or Spark raises
        return error
    return None

"""Percentiles, and ratios of two sides that were measured in turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

CURVE = (*(n / 50 for n in range(45)), 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99, 0.995, 0.999, 1.0)
"""The shares at which a distribution is kept for its plot."""


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value that `share` of the `ordered` values do not exceed; never one in between."""
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


def curve(values: Sequence[float]) -> list[float]:
    """The values at the shares of `CURVE`."""
    ordered = sorted(values)
    return [quantile(ordered, share) for share in CURVE]


@dataclass(frozen=True, slots=True)
class Ratio:
    """Ours to the other's over `pairs` rounds: the median, and the range of all of them."""

    median: float
    low: float
    high: float
    pairs: int

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


def ratio(ours: Mapping[int, float], other: Mapping[int, float]) -> Ratio | None:
    """Of two sides by round, each pair within its own round; None if no round has both."""
    found = [ours[n] / other[n] for n in ours if other.get(n)]
    return Ratio(median(found), min(found), max(found), len(found)) if found else None

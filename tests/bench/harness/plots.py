"""Plots as SVG text for a self-contained page: ratios with their ranges, and distributions of latency.

Colours come from the page's style sheet (classes `s0` to `s9`), so they follow a dark screen.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from tests.bench.harness.row import Goal
from tests.bench.harness.statistics import Ratio

WIDTH, LEFT, RIGHT = 960, 430, 90
_LINE, _TOP = 22, 26
_PLOT_HEIGHT, _BOTTOM, _KEY = 330, 34, 230


@dataclass(frozen=True, slots=True)
class Bar:
    """A line of the plot of ratios."""

    label: str
    ratio: Ratio
    goal: Goal | None = None
    colour: int = 0

    @property
    def marks(self) -> dict[str, float]:
        """The bar and the stretch goal, if it has them."""
        return {"bar": self.goal.bar, "stretch": self.goal.stretch} if self.goal else {}


@dataclass(frozen=True, slots=True)
class Curve:
    """(x, share) points of one distribution; shares rise."""

    label: str
    points: Sequence[tuple[float, float]]
    colour: int = 0


class _Scale:
    """Logarithmic, from `low` to `high` onto pixels."""

    def __init__(self, values: Iterable[float], left: float, right: float) -> None:
        positive = [value for value in values if value > 0] or [1.0]
        self.low, self.high = min(positive) / 1.15, max(positive) * 1.15
        self._left, self._span = left, right - left

    def __call__(self, value: float) -> float:
        share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return round(self._left + self._span * share, 1)

    def ticks(self) -> Iterator[float]:
        """Round numbers: 1, 2 and 5 of each decade, or 1 only where there are many decades."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        steps = (1, 2, 5) if last - first <= 4 else (1,)
        yield from (s * 10.0**d for d in range(first, last) for s in steps if self.low <= s * 10.0**d <= self.high)


def ratios(title: str, bars: Sequence[Bar]) -> str:
    """Each line's median as a dot on its range; the bar a solid mark, the stretch goal a dashed one."""
    values = [v for b in bars for v in (b.ratio.median, b.ratio.low, b.ratio.high, *b.marks.values(), 1.0)]
    scale, bottom = _Scale(values, LEFT, WIDTH - RIGHT), _TOP + _LINE * len(bars)
    parts = [*_grid(scale, _TOP - 8, bottom)]
    parts.append(f'<line class="one" x1="{scale(1)}" x2="{scale(1)}" y1="{_TOP - 8}" y2="{bottom}"/>')
    for n, b in enumerate(bars):
        y = _TOP + _LINE * n + _LINE / 2
        for name, value in b.marks.items():
            x = scale(value)
            parts.append(f'<line class="{name}" x1="{x}" x2="{x}" y1="{y - 9}" y2="{y + 9}"/>')
        parts += [
            f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{escape(b.label)}</text>',
            f'<line class="range s{b.colour}" x1="{scale(b.ratio.low)}" x2="{scale(b.ratio.high)}" y1="{y}" y2="{y}"/>',
            f'<circle class="dot s{b.colour}" cx="{scale(b.ratio.median)}" cy="{y}" r="5">'
            f"<title>{escape(b.label)}: {b.ratio}</title></circle>",
            f'<text x="{WIDTH - RIGHT + 12}" y="{y + 4}">{b.ratio.median:.2f}</text>',
        ]
    return _svg(title, bottom + _BOTTOM, parts)


def distributions(title: str, unit: str, curves: Sequence[Curve]) -> str:
    """The share of records that were there after a time; the upper end is stretched, as tails are what matters."""
    top, bottom, left, right = 10, _PLOT_HEIGHT, 60, WIDTH - _KEY
    scale = _Scale([x for c in curves for x, _ in c.points], left, right)
    parts = [*_grid(scale, top, bottom)]
    for share in (0.0, 0.5, 0.9, 0.99, 0.999):
        y = _height(share, top, bottom)
        parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{share * 100:g} %</text>')
    for n, curve in enumerate(curves):
        path = " ".join(f"{scale(x)},{_height(share, top, bottom)}" for x, share in curve.points)
        y = top + 12 + 20 * n
        parts += [
            f'<polyline class="curve s{curve.colour}" points="{path}"><title>{escape(curve.label)}</title></polyline>',
            f'<line class="curve s{curve.colour}" x1="{right + 14}" x2="{right + 34}" y1="{y - 4}" y2="{y - 4}"/>',
            f'<text x="{right + 40}" y="{y}">{escape(curve.label)}</text>',
        ]
    parts.append(f'<text x="{(left + right) / 2}" y="{bottom + 32}" text-anchor="middle">{escape(unit)}</text>')
    return _svg(title, bottom + 40, parts)


def _height(share: float, top: float, bottom: float) -> float:
    """Equal steps for 90, 99 and 99.9 percent."""
    nines = -math.log10(max(1 - share, 5e-4)) / -math.log10(5e-4)
    return round(bottom - (bottom - top) * nines, 1)


def _grid(scale: _Scale, top: float, bottom: float) -> Iterator[str]:
    for tick in scale.ticks():
        x = scale(tick)
        yield f'<line class="grid" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>'
        yield f'<text x="{x}" y="{bottom + 16}" text-anchor="middle">{tick:g}</text>'


def _svg(title: str, height: float, parts: Iterable[str]) -> str:
    head = f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">'
    return "\n".join([f"<figure><figcaption>{escape(title)}</figcaption>", head, *parts, "</svg></figure>"])

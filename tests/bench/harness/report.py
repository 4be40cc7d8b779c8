"""What a run found: figures for programs, and a table for the terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from statistics import median
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from tests.bench.harness.machine import description
from tests.bench.harness.rounds import Outcome
from tests.bench.harness.row import Goal, Measure, Plan
from tests.bench.harness.statistics import CURVE, Ratio

PAIRS = 5
"""Fewer pairs are not scored."""


@dataclass
class Report:
    """One run of the harness: when it began, what was asked of it, and what came of each row."""

    at: datetime
    arguments: Sequence[str]
    plan: Plan
    anyway: bool
    outcomes: list[Outcome] = field(default_factory=list)
    machine: dict[str, object] = field(default_factory=description)

    def as_json(self) -> dict[str, Any]:
        """All of it, for programs."""
        rows = [_outcome_as_json(outcome) for outcome in self.outcomes]
        asked = {"arguments": list(self.arguments), "plan": asdict(self.plan)}
        return {"at": self.at.isoformat(), **asked, "machine": self.machine, "rows": rows}


@dataclass(frozen=True, slots=True)
class Line:
    """One ratio, with the median of either side."""

    point: str
    measure: Measure
    ours: str
    other: str
    values: Sequence[float]
    ratio: Ratio
    goal: Goal | None
    scored: bool

    @property
    def mark(self) -> str:
        """How it compares with its goal."""
        if self.goal is None:
            return ""
        if _reaches(self.measure, self.ratio.median, self.goal.stretch):
            return "stretch goal"
        return "bar" if _reaches(self.measure, self.ratio.median, self.goal.bar) else "MISSED"


def lines(outcome: Outcome) -> Iterator[Line]:
    """All ratios of a row, by point and measure."""
    for point in outcome.points:
        for measure in outcome.row.method.measures:
            for ours, other, ratio in outcome.ratios(point, measure.name):
                values = tuple(middle(outcome, s.name, point, measure.name) for s in (ours, other))
                goal = outcome.row.goal(measure.name, other.name)
                scored = ratio.pairs >= PAIRS and not outcome.anyway
                yield Line(point, measure, ours.name, other.name, values, ratio, goal, scored)


def middle(outcome: Outcome, system: str, point: str, measure: str) -> float:
    """The median over the rounds."""
    return median(outcome.values(system, point, measure).values())


def verdict(outcome: Outcome) -> str:
    """Whether the figures count, in one line."""
    found = list(lines(outcome))
    void = sum(bool(cell.void) for cell in outcome.cells)
    voided = f"; {void} of {len(outcome.cells)} measurements void" if void else ""
    if outcome.anyway:
        return f"NOT SCORED: other work was allowed on the machine{voided}"
    if not found or not all(line.scored for line in found):
        return f"NOT SCORED: a ratio needs {PAIRS} sound and undisturbed pairs{voided}"
    return f"scored, with at least {min(line.ratio.pairs for line in found)} pairs a ratio{voided}"


def show(outcome: Outcome, console: Console) -> None:
    """The tables of a row, one for each measure and point."""
    found = list(lines(outcome))
    for measure in outcome.row.method.measures:
        for point in outcome.points:
            those = [line for line in found if (line.measure, line.point) == (measure, point)]
            if those:
                console.print(
                    _table(f"{outcome.row.name}: {measure.name} at {point}, {measure.better} is better", those)
                )
    for name, why in outcome.absent.items():
        console.print(f"not here: {name}: {why}", soft_wrap=True)
    console.print(verdict(outcome), style="green" if verdict(outcome).startswith("scored") else "yellow")


def _table(title: str, those: Sequence[Line]) -> Table:
    table = Table("ours", "other", title=title, title_justify="left", box=SIMPLE)
    for name in ("ours", "other", "ratio (range)", "pairs"):
        table.add_column(name, justify="right")
    table.add_column("bar, stretch")
    for line in those:
        values = (f"{value:,.1f} {line.measure.unit}" for value in line.values)
        goal = f"{line.goal.bar:g}, {line.goal.stretch:g}: {line.mark}" if line.goal else ""
        table.add_row(line.ours, line.other, *values, str(line.ratio), str(line.ratio.pairs), goal)
    return table


def _reaches(measure: Measure, ratio: float, wanted: float) -> bool:
    return ratio <= wanted if measure.better == "lower" else ratio >= wanted


def _outcome_as_json(outcome: Outcome) -> dict[str, Any]:
    systems = [{"name": s.name, "role": s.role, **asdict(s.guarantees)} for s in outcome.systems]
    ratios = [{**asdict(line), "mark": line.mark} for line in lines(outcome)]
    return {
        "name": outcome.row.name,
        "title": outcome.row.title,
        "verdict": verdict(outcome),
        "seconds_at_each_rate": outcome.seconds,
        "task": asdict(outcome.row.task_of(outcome.plan)),
        "systems": systems,
        "absent": outcome.absent,
        "ratios": ratios,
        "curve_shares": CURVE,
        "cells": [asdict(cell) for cell in outcome.cells],
    }

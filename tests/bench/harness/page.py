"""The report as files: one JSON for programs, one self-contained page for people."""

import json
import shlex
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from statistics import median
from string import Template

from tests.bench.harness import plots
from tests.bench.harness.report import Line, Report, lines, verdict
from tests.bench.harness.rounds import Outcome
from tests.bench.harness.row import Cell
from tests.bench.harness.statistics import CURVE

PAGE = Path(__file__).with_name("page.html")
_COLOURS = 10
HEADS = ("at", "measure", "ours", "other", "ours", "other", "ratio (range)", "pairs", "bar", "stretch", "")


def write(report: Report, folder: Path) -> Path:
    """`<time>.json` and `<time>.html` in `folder`; gives the page."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / f"{report.at:%Y-%m-%dT%H%M%S}.html"
    page.with_suffix(".json").write_text(json.dumps(report.as_json(), indent=1), "utf-8")
    page.write_text(html(report), "utf-8")
    return page


def html(report: Report) -> str:
    """The page."""
    return Template(PAGE.read_text("utf-8")).substitute(
        at=f"{report.at:%Y-%m-%d %H:%M} UTC",
        arguments=escape(shlex.join(report.arguments)),
        machine=escape(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in report.machine.items())),
        rows="\n".join(_row(outcome) for outcome in report.outcomes),
    )


def _row(outcome: Outcome) -> str:
    found, said = list(lines(outcome)), verdict(outcome)
    colours = {system.name: n % _COLOURS for n, system in enumerate(outcome.systems)}
    mood = "good" if said.startswith("scored") else "bad"
    systems = [
        (
            s.name,
            s.role,
            *(getattr(s.guarantees, name) for name in ("processing", "reads", "writes", "commit", "state")),
        )
        for s in outcome.systems
    ]
    wrong = [(c.system, c.round, c.point, c.void or c.disturbed) for c in outcome.cells if c.void or c.disturbed]
    return "\n".join(
        [
            f"<h2>{escape(outcome.row.title)}</h2>",
            f'<p class="verdict {mood}">{escape(said)}</p>',
            *_ratio_plots(found, colours),
            *_distributions(outcome, colours),
            "<h3>Under which conditions</h3>",
            _table(("system", "", "processing", "reads", "writes", "commits offsets", "keeps state in"), systems),
            "<h3>All ratios</h3>",
            _table(HEADS, [_cells(line) for line in found]),
            *(["<h3>Not here</h3>", _table(("system", "why"), list(outcome.absent.items()))] if outcome.absent else []),
            *(["<h3>Void or disturbed</h3>", _table(("system", "round", "at", "why"), wrong)] if wrong else []),
            "<h3>All measurements</h3>",
            _table(("system", "round", "at", "", "facts"), [_measurement(cell) for cell in outcome.cells]),
        ]
    )


def _ratio_plots(found: Sequence[Line], colours: dict[str, int]) -> Iterable[str]:
    for measure in dict.fromkeys(line.measure for line in found):
        for point in dict.fromkeys(line.point for line in found):
            those = [line for line in found if (line.measure, line.point) == (measure, point)]
            bars = [
                plots.Bar(f"{line.ours} : {line.other}", line.ratio, line.goal, colours[line.ours]) for line in those
            ]
            better = f"{measure.better} is better; solid mark: the bar, dashed: the stretch goal"
            yield plots.ratios(f"Ratio of {measure.name} at {point} ({better})", bars)


def _distributions(outcome: Outcome, colours: dict[str, int]) -> Iterable[str]:
    for point in outcome.points:
        curves = []
        for system in outcome.systems:
            spreads = [cell.curve for cell in outcome.sound(system.name, point) if cell.curve]
            if spreads:
                over_rounds = [median(values) for values in zip(*spreads, strict=True)]
                pairs = list(zip(over_rounds, CURVE, strict=True))
                curves.append(plots.Curve(system.name, pairs, colours[system.name]))
        if curves:
            yield plots.distributions(f"Share of alerts that were out by then, at {point}", "milliseconds", curves)


def _cells(line: Line) -> Sequence[object]:
    goal = (f"{line.goal.bar:g}", f"{line.goal.stretch:g}") if line.goal else ("", "")
    values = (f"{value:,.1f} {line.measure.unit}" for value in line.values)
    head = (line.point, line.measure.name, line.ours, line.other)
    return (*head, *values, line.ratio, line.ratio.pairs, *goal, line.mark)


def _measurement(cell: Cell) -> Sequence[object]:
    values, facts = (
        ", ".join(f"{name.replace('_', ' ')} {value:,.2f}" for name, value in items.items())
        for items in (cell.values, cell.facts)
    )
    return (cell.system, cell.round, cell.point, values or "void", facts)


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    def tr(cells: Sequence[object], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"

    return "\n".join(["<table>", tr(heads, "th"), *(tr(row, "td") for row in rows), "</table>"])

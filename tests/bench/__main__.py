"""`python -m tests.bench [ROW...]`: figures of ours beside peers and limits, in turn on one broker.

Nothing is measured while other work runs on the machine (exit code 1), unless --anyway, which marks the result as
not scored. A figure whose count out is not its count in is void.
"""

import argparse
import signal
import sys
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from lozenge import topics
from lozenge.admin import ensure_topics
from lozenge.kafka import KafkaSettings
from lozenge_deploy.broker import EmbeddedBroker
from tests.bench.harness import row, system
from tests.bench.harness.page import write
from tests.bench.harness.report import Report, show
from tests.bench.harness.rounds import Disturbed, Outcome, run
from tests.bench.harness.row import Cell
from tests.bench.harness.system import System


def main() -> int:
    """Measures the rows that were asked for; the exit code."""
    rows, systems = row.discovered(), system.discovered()
    given = _parser(list(rows)).parse_args()
    console = Console(highlight=False)
    plan = row.QUICK if given.quick else row.FULL
    changed = {name: getattr(given, name) for name in ("rounds", "minutes", "rates", "events")}
    plan = replace(plan, **{name: value for name, value in changed.items() if value is not None})
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # all that was started ends
    report, disturbed = Report(datetime.now(UTC), plan, given.anyway), False

    def tell(cell: Cell) -> None:
        said = "  ".join(f"{name} {value:,.1f}" for name, value in cell.values.items())
        wrong = " ".join(filter(None, [cell.void and f"VOID: {cell.void}", cell.disturbed and f"({cell.disturbed})"]))
        console.print(f"{cell.round}  {cell.system:32} {cell.point:8} {said}  {wrong}", soft_wrap=True)

    with (
        tempfile.TemporaryDirectory(prefix="lozenge-bench-") as scratch,
        EmbeddedBroker(Path(scratch, "broker"), heap_mb=512) as broker,
    ):
        kafka = KafkaSettings(bootstrap=broker.bootstrap)
        ensure_topics(kafka, topics.platform_topics())
        for name in given.rows or [each for each in rows if rows[each].quick or not given.quick]:
            each, size = rows[name], rows[name].plan_of(plan)
            fitting = [s for s in systems if each.fits(s)]
            those = [s for s in fitting if (_wanted(s, given.only) if given.only else each.needs(s) or given.all)]
            minutes = each.minutes(size, those)
            console.rule(f"{name}: {len(those)} systems, {size.rounds} rounds, about {minutes:.0f} minutes")
            outcome = Outcome(each, size, those, given.anyway)
            report.outcomes.append(outcome)
            try:
                run(outcome, kafka, Path(scratch), tell)
            except Disturbed as why:
                console.print(f"NOT MEASURED: {why}; end it, or measure --anyway, which is not scored", style="red")
                disturbed = True
            show(outcome, console)
            page = write(report, given.folder)
            if disturbed:
                break
    console.print(f"the report: {page}", soft_wrap=True)
    return 1 if disturbed else 0


def _wanted(system: System, only: list[str]) -> bool:
    """Whether any of the words is in its name."""
    return any(word.lower() in system.name.lower() for word in only)


def _parser(rows: list[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", choices=[[], *rows], help=f"of {', '.join(rows)}; else all")
    parser.add_argument("--quick", action="store_true", help="a rough table of most rows: one round, one rate, a small backlog")
    parser.add_argument("--anyway", action="store_true", help="measure though other work runs; not scored")
    parser.add_argument("--all", action="store_true", help="every system; a row then takes longer than its time")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="systems with one of these words in their names")
    parser.add_argument("--rounds", type=int, help="how often each system is measured; fewer than 5 are not scored")
    parser.add_argument("--minutes", type=float, help="how long a row of latencies takes, about")
    parser.add_argument("--rates", type=int, nargs="+", help="events a second")
    parser.add_argument("--events", type=int, help="of a backlog")
    parser.add_argument("--folder", type=Path, default=Path("build", "bench"), help="where the reports go")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.bench [ROW...]`: figures of ours compared with peers and limits, in turn on one broker.

Nothing is measured while other work runs on the machine (exit code 1), unless --anyway, which marks the result as
not scored. A figure whose count out is not its count in is void. What cannot be measured at all is a usage error (2).
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from lozenge.kafka.settings import PARTITIONS_VARIABLE, KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.streams.project import STREAMS_VARIABLE
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from tests.bench.harness import row, system
from tests.bench.harness.asked import Asked, asked
from tests.bench.harness.page import write
from tests.bench.harness.platform import TOPICS
from tests.bench.harness.report import Report, show
from tests.bench.harness.rounds import Disturbed, Outcome, run
from tests.bench.harness.row import Cell, Row
from tests.integration.harness import ended_behind
from tests.streams import FOLDER, every_topic


def main() -> int:
    """Measures the rows that were requested; the exit code."""
    given = asked(row.discovered(), system.discovered(), __doc__)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # all that was started ends
    os.environ.setdefault(STREAMS_VARIABLE, str(FOLDER))  # the systems run in folders of their own
    here = [(each, systems) for each, systems in given.rows if each.partitions in (0, TOPICS.partitions)]
    code = _measured(replace(given, rows=here)) if here else 0
    for each, _ in given.rows:
        if not code and each.partitions not in (0, TOPICS.partitions):
            code = _apart(each, given.options)
    return code


def _apart(each: Row, options: Sequence[str]) -> int:
    """Measures a row by a process that is given its number of partitions, with a report of its own; the exit code."""
    environment = os.environ | {PARTITIONS_VARIABLE: str(each.partitions)}
    command = [sys.executable, "-m", "tests.bench", each.name, *options]
    process = subprocess.Popen(command, env=environment, process_group=0)
    with ended_behind(process, 60):
        return process.wait()


def _measured(given: Asked) -> int:
    """Measures rows on one broker; the exit code."""
    console = Console(highlight=False)
    report, disturbed = Report(datetime.now(UTC), sys.argv[1:], given.plan, given.anyway), False

    def print_cell(cell: Cell) -> None:
        said = "  ".join(f"{name} {value:,.1f}" for name, value in cell.values.items())
        wrong = " ".join(filter(None, [cell.void and f"VOID: {cell.void}", cell.disturbed and f"({cell.disturbed})"]))
        console.print(f"{cell.round}  {cell.system:32} {cell.point:8} {said}  {wrong}", soft_wrap=True)

    with (
        tempfile.TemporaryDirectory(prefix="lozenge-bench-") as scratch,
        EmbeddedBroker(Path(scratch, "broker"), heap_mb=512) as broker,
    ):
        kafka = KafkaSettings(bootstrap=broker.bootstrap)
        ensure_topics(kafka, every_topic(TOPICS))
        for each, systems in given.rows:
            plan = each.plan_of(given.plan)
            minutes = each.minutes(plan, systems)
            console.rule(f"{each.name}: {len(systems)} systems, {plan.rounds} rounds, about {minutes:.0f} minutes")
            outcome = Outcome(each, plan, systems, given.anyway)
            report.outcomes.append(outcome)
            try:
                run(outcome, kafka, Path(scratch), print_cell)
            except Disturbed as why:
                console.print(f"NOT MEASURED: {why}; end it, or measure --anyway, which is not scored", style="red")
                disturbed = True
            show(outcome, console)
            page = write(report, given.folder)
            if disturbed:
                break
    console.print(f"the report: {page}", soft_wrap=True)
    return 1 if disturbed else 0


if __name__ == "__main__":
    sys.exit(main())

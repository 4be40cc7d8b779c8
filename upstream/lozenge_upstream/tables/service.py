"""The running loader of one table: a look at its source, then a pause, until it is stopped."""

from pathlib import Path

from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.reporter import Reporter
from lozenge.metrics.table_metrics import TableMetrics
from lozenge.platform_tables.project import read_table
from lozenge.platform_tables.state import TableState
from lozenge.process import logging
from lozenge.process.shutdown import StopSignal
from lozenge_upstream.tables.loader import Look, TableLoader


def run(folder: Path, kafka: KafkaSettings) -> None:
    """Loads the table that `folder` declares until SIGTERM or SIGINT, then ends after the present look.

    Raises ConfigError, TopicError or BrokerUnavailable before anything is read, and Fenced or BrokerUnavailable later.
    """
    stop = StopSignal()
    table = read_table(folder)
    logging.configure(table.app)
    metrics, loader = TableMetrics(table.app), TableLoader(table, kafka)
    with Reporter(metrics, kafka):
        loader.begin()
        before: Look | None = None
        while not stop.requested:
            found = loader.look()
            _report(found, before)
            _count(found, loader.rows, metrics)
            before = found
            stop.wait(table.every.total_seconds())
    logging.logger().info(f"{table.app} stopped")


def _count(found: Look, rows: int, metrics: TableMetrics) -> None:
    change = found.change
    metrics.records(found.rows)
    metrics.emitted(len(change.added) + len(change.changed) + len(change.removed))
    metrics.looked(found.state, rows)


def _report(found: Look, before: Look | None) -> None:
    """One line for each change, of the rows or of what is wrong: an alarm is not repeated at each look."""
    log = logging.logger()
    if found.state is TableState.GOOD:
        if found.change:
            log.info(f"a new version is in force: {found.change}", rows=found.rows)
        elif before is None or before.state is not TableState.GOOD:
            log.info("the source has the version in force", rows=found.rows)
    elif before is None or (before.state, before.problems) != (found.state, found.problems):
        log.error(
            f"the source is {found.state}, and the last good version stays: {'; '.join(found.problems)}",
            hint="correct the source or its declaration; it is read again at each look",
        )

"""The running loader of one table: a look at its source, then a pause, by the release that is deployed."""

from contextlib import closing

from lozenge.apps import table_app
from lozenge.kafka.followed_release import FollowedRelease
from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.reporter import Reporter
from lozenge.metrics.table_metrics import TableMetrics
from lozenge.platform_tables.definition import PlatformTable
from lozenge.platform_tables.project import table_of
from lozenge.platform_tables.state import TableState
from lozenge.process import logging
from lozenge.process.shutdown import Stop, StopSignal
from lozenge.protocol.app_requests import APPS, AppRelease
from lozenge_upstream.tables.loader import Look, TableLoader, source_of


def run(name: str, kafka: KafkaSettings) -> None:
    """Loads what is deployed of the table until SIGTERM or SIGINT, then ends after the present look.

    Another release begins after the present look. Raises UsageError if the table is not deployed, ConfigError,
    TopicError or BrokerUnavailable before anything is read, and Fenced or BrokerUnavailable later.
    """
    stop, app = StopSignal(), table_app(name)
    logging.configure(app)
    metrics = TableMetrics(app)
    with (
        closing(FollowedRelease(kafka, kafka.topics.control.apps, APPS, app, _read)) as followed,
        Reporter(metrics, kafka),
    ):
        for turn in followed.turns(stop):
            metrics.release = turn.release
            _load(turn.value, kafka, metrics, turn)
    logging.logger().info(f"{app} stopped")


def _read(release: AppRelease) -> PlatformTable:
    table = table_of(release.declaration)
    source_of(table)
    return table


def _load(table: PlatformTable, kafka: KafkaSettings, metrics: TableMetrics, turn: Stop) -> None:
    loader = TableLoader(table, kafka)
    loader.begin()
    before: Look | None = None
    while not turn.wait(0.0):
        found = loader.look()
        _report(found, before)
        _count(found, loader.rows, metrics)
        before = found
        turn.wait(table.every.total_seconds())


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

"""Throughput of making canonical events from a backlog of raw records, measured as any backlog is.

All systems write the one topic of events, as upstream knows no other. So each visit begins with that topic
empty and with upstream at the first raw record: it finds no output of an earlier visit that it could take for its own.
"""

from collections.abc import Iterator

from lozenge.kafka.settings import KafkaSettings
from tests.bench.harness.backlog import MEASURES, drained, write
from tests.bench.harness.row import START_SECONDS, Cell, Method, Plan, Visit
from tests.bench.harness.running import empty, stamped
from tests.bench.harness.upstream import start_at_earliest
from tests.bench.harness.workload import Task
from tests.streams import event_codec

RECORD_SECONDS = 75e-6
"""What a system takes for each, about: Python more, Spark less."""


def prepare(kafka: KafkaSettings, task: Task, plan: Plan) -> None:
    """Writes the raw records, which every system of the row reads from the first one on."""
    write(kafka, task, plan.events, raw=True)


def measure(visit: Visit) -> Iterator[Cell]:
    """Starts the system and waits until every raw record has its event."""
    output = visit.start.input
    empty(visit.kafka, output)
    start_at_earliest(visit.kafka)
    with stamped(visit.kafka, output):
        yield drained(visit, output, event_codec())


def seconds(plan: Plan, task: Task, systems: int) -> float:
    """A start, and all records."""
    return START_SECONDS + plan.events * RECORD_SECONDS


METHOD = Method("backlog", MEASURES, measure, seconds, prepare)

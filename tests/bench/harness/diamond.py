"""The latency of a whole diamond: from the moment a raw record is meant to be sent until its webhook has come."""

from collections.abc import Iterator
from dataclasses import replace

from tests.bench.harness.hop import MEASURES, Trial, seconds
from tests.bench.harness.platform import TOPICS
from tests.bench.harness.producer import Feed
from tests.bench.harness.row import Cell, Method, Visit
from tests.bench.harness.running import empty, started
from tests.bench.harness.upstream import start_at_earliest
from tests.bench.harness.webhooks import Webhooks
from tests.bench.harness.workload import notified
from tests.streams import RAW_JSON


def measure(visit: Visit) -> Iterator[Cell]:
    """Starts all three processes, warms them up, measures each rate."""
    for topic in (TOPICS.prefixed(RAW_JSON), TOPICS.events("auth")):
        empty(visit.kafka, topic)
    start_at_earliest(visit.kafka)
    with Webhooks() as gauge:
        start = replace(visit.start, webhook=gauge.url)
        with started(visit.system, start) as running, Feed(visit.kafka, start.task, raw=True) as feed:
            yield from Trial(start.task, running, gauge, feed, notified).at_rates(visit)


METHOD = Method("diamond", MEASURES, measure, seconds)

"""The latency of a whole diamond: from the moment a raw record is meant to be sent until its webhook has come."""

from collections.abc import Iterator
from dataclasses import replace

from lozenge import topics
from lozenge.kafka import KafkaSettings
from lozenge.reading import bounds
from tests.bench.harness.hop import MEASURES, Trial, seconds
from tests.bench.harness.producer import Feed
from tests.bench.harness.row import Cell, Method, Visit
from tests.bench.harness.running import empty, started
from tests.bench.harness.webhooks import Webhooks
from tests.bench.harness.workload import notified
from tests.integration.harness import move


def measure(visit: Visit) -> Iterator[Cell]:
    """Starts all three processes, warms them up, measures each rate."""
    for topic in (topics.RAW_JSON, topics.EVENTS):
        empty(visit.kafka, topic)
    _pass_over(visit.kafka)
    with Webhooks() as gauge:
        start = replace(visit.start, webhook=gauge.url)
        with started(visit.system, start) as running, Feed(visit.kafka, start.task, raw=True) as feed:
            yield from Trial(start.task, running, gauge, feed, notified).at_rates(visit)


def _pass_over(kafka: KafkaSettings) -> None:
    """Upstream's group goes behind the raw records that are deleted; it would rightly refuse to leave them out."""
    ends = bounds(kafka, topics.RAW_JSON, topics.RAW_PARTITIONS)
    move(kafka, "upstream", {partition: end for partition, (_, end) in ends.items()}, topics.RAW_JSON)


METHOD = Method("diamond", MEASURES, measure, seconds)

"""How many records of the platform's own topics this process could not read as rows."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from lozenge.kafka.row_decoding import SKIPPED


class RefusedRows(Collector):
    """A series for each topic that has such a record, from its first one on."""

    def collect(self) -> Iterator[CounterMetricFamily]:
        """The counts since the process began."""
        family = CounterMetricFamily(
            "lozenge_rows_refused",
            "Records of the platform's topics that are no rows, and were skipped",
            labels=["topic"],
        )
        for topic, count in SKIPPED.copy().items():
            family.add_metric([topic], count)
        yield family

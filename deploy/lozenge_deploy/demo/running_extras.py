"""What a run of the demo has on request: sinks, and a source of files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from lozenge.contracts.topics import Topic
from lozenge.kafka.settings import KafkaSettings
from lozenge.streams.project import Streams
from lozenge_deploy.demo.files.running_source import RunningSources, sources_of
from lozenge_deploy.demo.reconciliation import Comparison
from lozenge_deploy.demo.sinks.extras import Extra
from lozenge_deploy.demo.sinks.running_sinks import RunningSinks, sinks_of


class RunningExtras(NamedTuple):
    """Those of one run; each may have none."""

    sinks: RunningSinks
    sources: RunningSources

    def topics(self, kafka: KafkaSettings) -> list[Topic]:
        """Those that they write, without raw topics."""
        return [*self.sinks.topics(kafka), *self.sources.topics(kafka)]

    def comparisons(self, kafka: KafkaSettings) -> list[Comparison]:
        """What they have written compared with what it was made of; raises BrokerUnavailable, CacheUnavailable."""
        return [*self.sources.comparisons(kafka), *self.sinks.comparisons(kafka)]


@contextmanager
def extras_of(chosen: Sequence[Extra], streams: Streams, work: Path) -> Iterator[RunningExtras]:
    """What was chosen, with what it needs in `work`; raises as `sinks_of` does."""
    with sinks_of(chosen, streams, work) as sinks:
        yield RunningExtras(sinks, sources_of(chosen, work))

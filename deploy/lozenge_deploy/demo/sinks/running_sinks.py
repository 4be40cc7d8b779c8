"""The sinks of one run of the demo: what each reads, its process, and its comparison at the end."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from lozenge.archive.settings import ARCHIVE_VARIABLE
from lozenge.contracts.topics import Topic
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.sink_declarations.cache_sink import CacheSink
from lozenge.sink_declarations.project import SINKS as FOLDER
from lozenge.sink_declarations.project import Sink, read_sink
from lozenge.streams.project import Streams
from lozenge_deploy.demo.processes import Programs
from lozenge_deploy.demo.reconciliation import Comparison
from lozenge_deploy.demo.sinks.cache_server import URL_VARIABLE, cache_server
from lozenge_deploy.demo.sinks.extras import SINKS, Extra
from lozenge_deploy.operations.declarations.apps import requests_of_apps
from lozenge_deploy.operations.declarations.sinks import deployment_of
from lozenge_deploy.releases.build import CHECKOUT
from lozenge_deploy.supervision.supervisor import Supervisor

REASON = "a demo"


class RunningSinks:
    """The sinks that some folders declare; their tables are in `archive`, the cache's server is at `url`."""

    def __init__(self, folders: Iterable[Path], streams: Streams, archive: Path, url: str) -> None:
        """`url` is "" if no cache is among them. Raises ConfigError for a declaration that is wrong."""
        self._sinks, self._streams = [read_sink(folder) for folder in folders], streams
        self._archive, self._url = archive, url

    @property
    def apps(self) -> list[str]:
        """The names of their processes and groups."""
        return [sink.app for sink in self._sinks]

    @property
    def variables(self) -> dict[str, str]:
        """Where each process writes."""
        return {ARCHIVE_VARIABLE: str(self._archive)} | ({URL_VARIABLE: self._url} if self._url else {})

    def topics(self, kafka: KafkaSettings) -> list[Topic]:
        """Those that they write."""
        return [kafka.topics.dead_letter_topic(app) for app in self.apps]

    def inputs(self, kafka: KafkaSettings) -> Mapping[str, list[str]]:
        """The topics that each reads, of those that exist."""
        return {sink.app: self._inputs(sink, kafka) for sink in self._sinks}

    def deploy(self, kafka: KafkaSettings) -> None:
        """Deploys all of them, as `lozenge sink deploy` does; raises BrokerUnavailable."""
        requests = requests_of_apps(kafka)
        for sink in self._sinks:
            requests.make(sink.app, partial(deployment_of, sink=sink, reason=REASON), action="sink deploy", detail={})

    def start(self, programs: Programs, supervisor: Supervisor) -> None:
        """Starts those that were not started; they are deployed."""
        for sink in self._sinks:
            if sink.app not in supervisor.children:
                supervisor.start(programs.sink(sink.app, sink.name, self.variables))

    def comparisons(self, kafka: KafkaSettings) -> list[Comparison]:
        """Tables and keys compared with their topics; raises BrokerUnavailable, CacheUnavailable."""
        return [each for sink in self._sinks for each in self._compared(sink, kafka)]

    def _compared(self, sink: Sink, kafka: KafkaSettings) -> list[Comparison]:
        if isinstance(sink, CacheSink):
            from lozenge_deploy.demo.sinks.cache_check import cache_comparisons, count_keys

            return cache_comparisons(sink, count_keys(kafka, sink, self._streams.get(sink.stream), self._url))
        from lozenge_deploy.demo.sinks.archive_check import archive_comparisons, count_tables

        return archive_comparisons(sink, count_tables(kafka, sink, self._inputs(sink, kafka), self._archive))

    def _inputs(self, sink: Sink, kafka: KafkaSettings) -> list[str]:
        if isinstance(sink, CacheSink):
            return [self._streams.get(sink.stream).events(kafka.topics, sink.key)]
        from lozenge.archive.archived_topics import archived_topics

        found = archived_topics(sink, kafka.topics, self._streams.definitions, partitions(kafka))
        return [each.topic for each in found]


@contextmanager
def sinks_of(chosen: Sequence[Extra], streams: Streams, work: Path) -> Iterator[RunningSinks]:
    """The sinks that were chosen, with what they need; tables and a server's data are in `work`.

    Raises ConfigError for a declaration that is wrong, and as `cache_server` does.
    """
    folders = [CHECKOUT / FOLDER / SINKS[extra] for extra in chosen if extra in SINKS]
    with ExitStack() as stack:
        caches = [sink for sink in map(read_sink, folders) if isinstance(sink, CacheSink)]
        url = stack.enter_context(cache_server(caches[0], work / "cache")) if caches else ""
        yield RunningSinks(folders, streams, work / "archive", url)

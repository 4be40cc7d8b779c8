"""The processes of the file sources, sinks and tables that are deployed, on the platform of one machine."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lozenge.apps import file_source_app, is_sink
from lozenge.kafka.compacted_topic import CompactedTopic
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.app_requests import APPS, AppState
from lozenge.protocol.source_requests import SOURCES, SourceState
from lozenge_deploy.local.upstream_replicas import instance_names


@dataclass(frozen=True)
class DeclaredProgram:
    """A process that is to run: its module with arguments, and its own variables. `release` is what is requested."""

    module: tuple[str, ...]
    release: int
    variables: Mapping[str, str] = field(default_factory=dict)


Programs = dict[str, DeclaredProgram]


def programs_of_source(state: SourceState) -> Programs:
    """The processes of a file source, by name; a paused one keeps its files, and copies nothing."""
    if (request := state.request) is None:
        return {}
    own = DeclaredProgram(("lozenge_upstream.files",), request.release, {"LOZENGE_FILES_SOURCE": state.name})
    return dict.fromkeys(instance_names(file_source_app(state.name), request.instances), own)


def programs_of_app(state: AppState) -> Programs:
    """The processes of a sink or a table, by name; none while it is paused."""
    if (request := state.request) is None or request.paused:
        return {}
    module = "lozenge.sink" if is_sink(state.name) else "lozenge_upstream.tables"
    own = DeclaredProgram((module, state.name.partition("-")[2]), request.release)
    return dict.fromkeys(instance_names(state.name, request.instances), own)


class DeployedPrograms:
    """Follows what is requested of file sources, sinks and tables; used by one thread."""

    def __init__(self, kafka: KafkaSettings) -> None:
        """Raises BrokerUnavailable."""
        control = kafka.topics.control
        self._followed: list[tuple[CompactedTopic[Any], Callable[[Mapping[str, Any]], Iterator[Programs]]]] = [
            (CompactedTopic(kafka, control.sources, SOURCES.decode), _of_sources),
            (CompactedTopic(kafka, control.apps, APPS.decode), _of_apps),
        ]
        for rows, _ in self._followed:
            list(rows.catch_up())

    def programs(self) -> Programs:
        """Each process that is to run, by name; nothing waits."""
        found: Programs = {}
        for followed, programs_of in self._followed:
            list(followed.poll(0.0))
            for programs in programs_of(followed.rows):
                found |= programs
        return found

    def close(self) -> None:
        """Closes the connections."""
        for rows, _ in self._followed:
            rows.close()


def _of_sources(rows: Mapping[str, Any]) -> Iterator[Programs]:
    return map(programs_of_source, SOURCES.deployed(rows))


def _of_apps(rows: Mapping[str, Any]) -> Iterator[Programs]:
    return map(programs_of_app, APPS.deployed(rows))

"""The processes of the file sources, sinks and tables that are deployed, on the platform of one machine."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lozenge.apps import file_source_app, is_sink
from lozenge.protocol.app_requests import AppState
from lozenge.protocol.declared_releases import AnyState
from lozenge.protocol.source_requests import SourceRequest, SourceState
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


def programs_of(deployed: Iterable[AnyState]) -> Programs:
    """Each process that is to run of what is deployed, by name."""
    found: Programs = {}
    for state in deployed:
        found |= programs_of_source(state) if isinstance(state.request, SourceRequest) else programs_of_app(state)
    return found

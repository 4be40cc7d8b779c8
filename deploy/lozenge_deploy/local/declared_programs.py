"""The processes of the file sources, sinks and tables that are deployed, on the platform of one machine."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lozenge.apps import file_source_app, is_file_source, is_sink, source_of
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


def program_of(app: str, release: int = 0) -> DeclaredProgram:
    """What runs the file source, the sink or the table of an app."""
    if is_file_source(app):
        return DeclaredProgram(("lozenge_upstream.files",), release, {"LOZENGE_FILES_SOURCE": source_of(app)})
    module = "lozenge.sink" if is_sink(app) else "lozenge_upstream.tables"
    return DeclaredProgram((module, app.partition("-")[2]), release)


def programs_of_source(state: SourceState) -> Programs:
    """The processes of a file source, by name; a paused one keeps its files, and copies nothing."""
    if (request := state.request) is None:
        return {}
    app = file_source_app(state.name)
    return dict.fromkeys(instance_names(app, request.instances), program_of(app, request.release))


def programs_of_app(state: AppState) -> Programs:
    """The processes of a sink or a table, by name; none while it is paused."""
    if (request := state.request) is None or request.paused:
        return {}
    return dict.fromkeys(instance_names(state.name, request.instances), program_of(state.name, request.release))


def programs_of(deployed: Iterable[AnyState]) -> Programs:
    """Each process that is to run of what is deployed, by name."""
    found: Programs = {}
    for state in deployed:
        found |= programs_of_source(state) if isinstance(state.request, SourceRequest) else programs_of_app(state)
    return found

"""What a command requests of a file source, given what is deployed. Pure."""

from collections.abc import Iterable
from typing import Any

from lozenge.errors import UsageError
from lozenge.file_sources.definition import FileSource
from lozenge.process.user_name import user_name
from lozenge.protocol.file_positions import FilePosition, FileState
from lozenge.protocol.source_requests import (
    MOST_INSTANCES,
    FileRetry,
    SourceRelease,
    SourceRequest,
    SourceRow,
    SourceState,
)

Rows = list[SourceRow]


def deployment_of(state: SourceState, source: FileSource, reason: str) -> Rows:
    """Requests this declaration: as the release that has it, or as a new one. Raises UsageError if it is in force."""
    declaration = source.model_dump(mode="json")
    same = [number for number, release in state.releases.items() if release.declaration == declaration]
    release = SourceRelease(source.name, state.next_number(), declaration, user_name(), reason)
    if not same:
        return [release, _request(state, release.number)]
    if state.request is not None and state.request.release == same[-1]:
        raise UsageError(
            f"deploying the file source {source.name}: its folder is r{same[-1]}, which is deployed already",
            hint=f"change source.toml first; `lozenge source history {source.name}` lists the releases",
        )
    return [_request(state, same[-1])]


def rollback_of(state: SourceState, to: str) -> Rows:
    """Requests an earlier release: `to`, such as "r2", or the one before that in force for "". Raises UsageError."""
    request = _deployed(state, "rolling back")
    names = {release.name: number for number, release in state.releases.items()}
    if to and to not in names:
        raise UsageError(
            f"rolling the file source {state.source} back: there is no release {to}",
            hint=f"name one of {', '.join(names)}",
        )
    earlier = [number for number in state.releases if number < request.release]
    if not to and not earlier:
        raise UsageError(
            f"rolling the file source {state.source} back: r{request.release} is its first release",
            hint="--to names another one",
        )
    return [_request(state, names[to] if to else max(earlier))]


def rate_changed(state: SourceState, rate: float) -> Rows:
    """Requests so many rows a second of all instances; 0 is no limit."""
    return [_with(state, "setting the rate of", rate=rate)]


def paused(state: SourceState, is_paused: bool) -> Rows:
    """Requests that it copies nothing, or resumes."""
    return [_with(state, "pausing" if is_paused else "resuming", paused=is_paused)]


def scaled(state: SourceState, instances: int) -> Rows:
    """Requests so many instances; raises UsageError for more than there are partitions of positions."""
    if not 1 <= instances <= MOST_INSTANCES:
        raise UsageError(
            f"scaling the file source {state.source}: {instances} instances", hint=f"1 to {MOST_INSTANCES} share files"
        )
    return [_with(state, "scaling", instances=instances)]


def retried(state: SourceState, positions: Iterable[FilePosition], paths: list[str], *, from_start: bool) -> Rows:
    """Requests that the failed files `paths`, or all for none, are tried again.

    Raises UsageError that names what is not failed.
    """
    known = {position.path: position for position in positions if position.state is FileState.FAILED}
    if unknown := [path for path in paths if path not in known]:
        raise UsageError(
            f"retrying files of {state.source}: not failed: {', '.join(unknown)}",
            hint=f"`lozenge source files {state.source} --state failed` lists what is",
        )
    request = _deployed(state, "retrying files of")
    wanted = {path: FileRetry(from_start=from_start) for path in paths or known}
    kept = {path: retry for path, retry in request.retries.items() if path in known}
    return [_with(state, "retrying files of", retries=kept | wanted)]


def _with(state: SourceState, doing: str, **values: Any) -> SourceRequest:
    before = _deployed(state, doing)
    given = {name: getattr(before, name) for name in ("release", "instances", "paused", "rate", "retries")}
    return SourceRequest(state.source, **{**given, **values}, by=user_name())


def _request(state: SourceState, release: int) -> SourceRequest:
    if state.request is None:
        return SourceRequest(state.source, release, by=user_name())
    return _with(state, "deploying", release=release)


def _deployed(state: SourceState, doing: str) -> SourceRequest:
    if state.request is None:
        raise UsageError(
            f"{doing} the file source {state.source}: it is not deployed",
            hint=f"`lozenge source deploy {state.source}`; `lozenge source ls` lists all",
        )
    return state.request

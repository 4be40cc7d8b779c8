"""What a command requests of a file source, given what is deployed. Pure but for the clock."""

from collections.abc import Iterable
from typing import Any

from lozenge.errors import UsageError
from lozenge.file_sources.definition import FileSource
from lozenge.protocol.file_positions import FilePosition, FileState
from lozenge.protocol.source_requests import MOST_INSTANCES, SOURCES, FileRetry, SourceRequest, SourceRow, SourceState
from lozenge_deploy.operations.declarations import releases
from lozenge_deploy.operations.declarations.releases import Words

Rows = list[SourceRow]


def words_of(source: str) -> Words:
    """How sentences name a file source."""
    return Words(f"the file source {source}", source, "source.toml", "lozenge source")


def deployment_of(state: SourceState, source: FileSource, reason: str) -> Rows:
    """Requests this declaration: as the release that has it, or as a new one. Raises UsageError if it is in force."""
    return releases.deployment_of(SOURCES, state, source.model_dump(mode="json"), reason, words_of(state.name))


def rollback_of(state: SourceState, to: str) -> Rows:
    """Requests an earlier release: `to`, such as "r2", or the one before that in force for "". Raises UsageError."""
    return [releases.rollback_of(SOURCES, state, to, words_of(state.name))]


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
            f"scaling the file source {state.name}: {instances} instances", hint=f"1 to {MOST_INSTANCES} share files"
        )
    return [_with(state, "scaling", instances=instances)]


def retried(state: SourceState, positions: Iterable[FilePosition], paths: list[str], *, from_start: bool) -> Rows:
    """Requests that the failed files `paths`, or all for none, are tried again.

    Raises UsageError that names what is not failed.
    """
    known = {position.path: position for position in positions if position.state is FileState.FAILED}
    if unknown := [path for path in paths if path not in known]:
        raise UsageError(
            f"retrying files of {state.name}: not failed: {', '.join(unknown)}",
            hint=f"`lozenge source files {state.name} --state failed` lists what is",
        )
    request = _deployed(state, "retrying files of")
    wanted = {path: FileRetry(from_start=from_start) for path in paths or known}
    kept = {path: retry for path, retry in request.retries.items() if path in known}
    return [_with(state, "retrying files of", retries=kept | wanted)]


def _with(state: SourceState, doing: str, **values: Any) -> SourceRequest:
    return releases.changed(_deployed(state, doing), **values)


def _deployed(state: SourceState, doing: str) -> SourceRequest:
    return releases.deployed(state, doing, words_of(state.name))

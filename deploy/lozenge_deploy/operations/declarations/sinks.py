"""Sinks before they are released: what is wrong with a declaration, and what a change of one does."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from lozenge.cache.cached_topic import cached_topic
from lozenge.durations import text_of
from lozenge.errors import ConfigError, UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge.near_names import near_hint
from lozenge.protocol.app_requests import AppRow, AppState
from lozenge.protocol.declared_releases import DeclaredRelease, name_of
from lozenge.sink_declarations.archive_sink import ArchiveSink
from lozenge.sink_declarations.cache_sink import CacheSink
from lozenge.sink_declarations.project import Sink, sink_named, sink_of
from lozenge.streams.project import Streams
from lozenge_deploy.operations.declarations import apps


class CheckedSink(NamedTuple):
    """A sink that can run, and what may be an oversight."""

    sink: Sink
    warnings: list[str]


def checked_sink(name: str, streams: Streams, kafka: KafkaSettings) -> CheckedSink:
    """The sink `name` in the project of `streams`.

    Raises UsageError for a name that there is not. Raises ConfigError for a declaration that is wrong, with every
    stream, key, field and variable that there is not.
    """
    sink = sink_named(streams.project, name)
    require_sound(sink, streams, kafka, f"checking the sink {name}")
    return CheckedSink(sink, list(_unknown_detector(sink, streams.project)))


def require_sound(sink: Sink, streams: Streams, kafka: KafkaSettings, doing: str) -> None:
    """Raises ConfigError with every stream, key, field and variable that a sink names, and that there is not."""
    if problems := list(_problems(sink, streams, kafka)):
        raise ConfigError(
            f"{doing}: {len(problems)} problem(s)",
            problems=problems,
            hint="change its sink.toml, or set the variables where this command and the sink are started",
        )


def deployment_of(state: AppState, sink: Sink, reason: str) -> list[AppRow]:
    """Requests this declaration. Raises UsageError if it is in force, or if no sink may change so."""
    if (before := last_of(state)) is not None and (refusal := refused_change(before, sink)):
        raise UsageError(f"deploying the sink {sink.name}: {refusal[0]}", hint=refusal[1])
    return apps.deployment_of(state, sink.model_dump(mode="json"), reason)


def rollback_of(state: AppState, to: str, streams: Streams, kafka: KafkaSettings) -> list[AppRow]:
    """Requests an earlier release. Raises UsageError, and ConfigError for one that cannot run any more."""
    return apps.rollback_of(state, to, sink_of, lambda sink, doing: require_sound(sink, streams, kafka, doing))


def last_of(state: AppState) -> Sink | None:
    """The sink of the release that is requested, or else of the newest one; None without one that can be read."""
    release = state.release or (state.releases[max(state.releases)] if state.releases else None)
    try:
        return sink_of(release.declaration) if release is not None else None
    except ValueError:
        return None


def refused_change(before: Sink, after: Sink) -> tuple[str, str] | None:
    """Why a sink that was `before` does not become `after`, and what to do; None if it may.

    Its position is that of one topic on one kind of store, so what would be kept of another is wrong.
    """
    another = f"declare the new one in a folder of its own; `lozenge retire {before.app}` stops this one"
    if before.kind != after.kind:
        return f"it is of the kind {before.kind}, and would be of the kind {after.kind}", another
    if isinstance(before, CacheSink) and isinstance(after, CacheSink) and before.reads != after.reads:
        return f"it has {before.reads}, and would have {after.reads}; the keys that it has would stay", another
    return None


def effects(before: Sink, after: Sink) -> Iterator[str]:
    """What a change of a declaration does not do, or does for good."""
    if isinstance(before, CacheSink) and isinstance(after, CacheSink):
        yield from _effects_on_cache(before, after)
    elif isinstance(before, ArchiveSink) and isinstance(after, ArchiveSink):
        yield from _effects_on_archive(before, after)


def reads_of(release: DeclaredRelease) -> str:
    """What a release reads; "" if this version of the platform cannot read it."""
    try:
        sink = sink_of(release.declaration)
    except ValueError:
        return ""
    return ", ".join(sink.records) if isinstance(sink, ArchiveSink) else sink.reads


def sink_row(app: str, state: AppState | None) -> dict[str, Any]:
    """A sink in a table."""
    request, release = (state.request, state.release) if state is not None else (None, None)
    return {
        "sink": app.partition("-")[2],
        "kind": release.declaration.get("kind") if release is not None else None,
        "phase": "not deployed" if request is None else "paused" if request.paused else "deployed",
        "release": name_of(request.release) if request is not None else None,
        "instances": request.instances if request is not None else 0,
        "reads": reads_of(release) if release is not None else None,
    }


def _effects_on_cache(before: CacheSink, after: CacheSink) -> Iterator[str]:
    if before.url != after.url:
        yield "another server is filled from the topic; the entries of the present one stay there, and get no records"
    again = f"to change all at once, pause {after.app}, delete what the server has of it, and resume it"
    changed = [name for name in ("fields", "ttl") if getattr(before, name) != getattr(after, name)]
    if changed:
        yield f"{' and '.join(changed)}: an entry changes with the next record of its key; {again}"


def _effects_on_archive(before: ArchiveSink, after: ArchiveSink) -> Iterator[str]:
    left = [str(each) for each in before.records if each not in after.records]
    left += [f"events of {each}" for each in before.streams if after.streams and each not in after.streams]
    if after.streams and not before.streams:
        left.append(f"events of other streams than {', '.join(after.streams)}")
    if left:
        yield f"{', '.join(left)}: their tables stay, and get no rows any more"
    if before.buckets != after.buckets:
        yield f"buckets: tables that exist keep {before.buckets}"
    for kind, kept in after.retention.items():
        if kind not in before.retention or kept < before.retention[kind]:
            yield f"retention: rows of {kind} older than {text_of(kept)} are deleted, and no rollback brings them back"


def _problems(sink: Sink, streams: Streams, kafka: KafkaSettings) -> Iterator[str]:
    definitions = {each.name: each for each in streams.definitions}
    if isinstance(sink, ArchiveSink):
        have = ", ".join(definitions)
        yield from (
            f"streams: there is no stream {each}; there are {have}" for each in sink.streams if each not in definitions
        )
    else:
        yield from _refused_by(sink.address)
        yield from _refused_by(lambda: cached_topic(sink, kafka, definitions))


def _refused_by(check: Callable[[], object]) -> Iterator[str]:
    try:
        check()
    except ConfigError as error:
        yield from error.problems or [error.message]


def _unknown_detector(sink: Sink, project: Path) -> Iterator[str]:
    """That the detector of a cache is none of the project: a platform may have it all the same."""
    if not isinstance(sink, CacheSink):
        return
    detector = sink.alerts_of or sink.state_of
    known = [file.parent.name for file in (project / "detectors").glob("*/pyproject.toml")]
    if detector and detector not in known:
        missing = f"{sink.app} waits for the {sink.reads}, and this project has no detector {detector}"
        yield "; ".join(filter(None, (missing, near_hint(detector, known))))

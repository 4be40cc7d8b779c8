"""Deploys the folder of a stream: prepared with every reason against it, then requested."""

from collections.abc import Mapping
from dataclasses import dataclass

from lozenge.errors import ConfigError, SchemaError
from lozenge.kafka import schema_topic
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.stream_releases import present_state
from lozenge.kafka.topic_admin import ensure_topics, partitions
from lozenge.protocol.stream_releases import (
    FOLDER,
    ReleaseId,
    StreamDeployment,
    StreamState,
    release_name,
)
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.evolution import incompatible
from lozenge.streams.release_files import definition_of, digest_of
from lozenge_deploy.operations.streams import release_requests
from lozenge_deploy.operations.streams.release_changes import Rows, changes, refusals, topics_of


@dataclass(frozen=True)
class StreamCandidate:
    """A folder that may become the next release: what would change, and why it must not, if it must not."""

    definition: StreamDefinition
    files: dict[str, str]
    changes: Rows
    refusal: SchemaError | None


def prepare(kafka: KafkaSettings, definition: StreamDefinition, files: dict[str, str]) -> StreamCandidate:
    """The candidate that `files` make; nothing changes. Raises UsageError if they are in force, BrokerUnavailable."""
    state = present_state(kafka, definition.name)
    request, _ = release_requests.deployment_of(state, files, "")
    definitions = _definitions(state)
    present = state.to_run
    before = state.releases[present].files if present in state.releases else {}
    existing = partitions(kafka)
    rows = changes(
        _present_id(state),
        ReleaseId(release_name(request.release), digest_of(files)),
        (before, files),
        (definitions.get(release_name(present)), definition),
        [topic for topic in topics_of(definition, kafka.topics) if topic not in existing],
    )
    problems = [*refusals(definitions, definition), *_against_announced(kafka, definition)]
    return StreamCandidate(definition, files, rows, _refusal(definition.name, problems) if problems else None)


def request(kafka: KafkaSettings, candidate: StreamCandidate, reason: str, *, tested: bool) -> StreamDeployment:
    """Creates the topics that it needs and requests it; raises its refusal, UsageError, BrokerUnavailable.

    The audit record says so if its samples were not `tested`.
    """
    if candidate.refusal is not None:
        raise candidate.refusal
    stream, files = candidate.definition, candidate.files
    ensure_topics(kafka, stream.topics(kafka.topics, stream.copies))
    return release_requests.make(
        kafka,
        stream.name,
        lambda state: release_requests.deployment_of(state, files, reason),
        {} if tested else {"samples": "not run"},
    )


def _definitions(state: StreamState) -> dict[str, StreamDefinition]:
    """What each release declares, by its name; without those that are no stream any more by what is checked today."""
    found = {}
    for number, release in state.releases.items():
        try:
            found[release_name(number)] = definition_of(release.files, state.stream)
        except ConfigError:  # its schema is announced, and compared as such
            continue
    return found


def _present_id(state: StreamState) -> ReleaseId | None:
    if state.to_run == FOLDER:
        return None
    release = state.releases.get(state.to_run)
    return release.id if release is not None else ReleaseId(release_name(state.to_run), "")


def _against_announced(kafka: KafkaSettings, definition: StreamDefinition) -> list[str]:
    """Why records of a schema that was announced for the stream cannot be in one topic with those of `definition`."""
    new: Mapping[str, object] = definition.wire_schema
    return [
        f"event.avsc: {problem} in the announced schema {schema.id}"
        for schema in schema_topic.announced(kafka)
        if schema.name == definition.schema_name
        for problem in incompatible(schema.definition, new)
    ]


def _refusal(stream: str, problems: list[str]) -> SchemaError:
    return SchemaError(
        f"deploying the stream {stream}: its events cannot be in the topics that it has",
        problems=list(dict.fromkeys(problems)),
        hint="a new field is optional and has a default; anything else is a stream of its own, such as "
        f"{stream}_v2, to which detectors move one by one",
    )

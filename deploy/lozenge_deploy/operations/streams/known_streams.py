"""The stream that a command names: of the project, or without a folder there by the texts that the platform keeps."""

from lozenge.errors import BrokerUnavailable, ConfigError, LozengeError, UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.stream_releases import present_state
from lozenge.kafka.topic_admin import partitions
from lozenge.protocol.stream_releases import StreamState, release_name
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.project import Streams
from lozenge.streams.release_files import definition_of

BROKER_SECONDS = 1.0
"""So long a broker is waited for that may know more of a stream than the project."""


def kept_definition(state: StreamState) -> StreamDefinition | None:
    """What the newest of the kept texts declare that can be read, those of the folder last; None if there are none."""
    kept = [release for _, release in sorted(state.releases.items(), reverse=True)]
    for release in (*kept, *([state.folder] if state.folder is not None else [])):
        try:
            return definition_of(release.files, state.stream)
        except ConfigError:
            continue
    return None


def normaliser_of(kafka: KafkaSettings, name: str) -> str:
    """The normaliser of a stream, whose folder may be gone, or wrong.

    Raises UsageError or ConfigError of the project if the platform does not know the stream either.
    """
    try:
        return Streams.load().get(name).app
    except (ConfigError, UsageError) as missing:
        return _kept(kafka, name, missing)[1].app


def with_folder(kafka: KafkaSettings, streams: Streams, name: str) -> StreamDefinition:
    """The stream of the project that has its folder there.

    Raises UsageError, which says what is in force of a stream whose folder is gone; ConfigError if it is wrong.
    """
    try:
        return streams.get(name)
    except UsageError as missing:
        state, _ = _kept(kafka, name, missing)
        rollback = (
            f"`lozenge stream rollback {name}` puts an earlier release in force without it"
            if state.deployment is not None
            else "upstream runs on as it began, and needs the folder when it starts again"
        )
        present = release_name(state.to_run)
        raise UsageError(
            f"looking for a stream in {streams.folder}: {name} has no folder there any more, and {present} is in force",
            hint=f"restore the folder, then try again; {rollback}",
        ) from None


def _kept(kafka: KafkaSettings, name: str, missing: LozengeError) -> tuple[StreamState, StreamDefinition]:
    """What the platform knows of a stream; raises what is `missing` in the project if it knows nothing."""
    try:
        partitions(kafka, timeout=BROKER_SECONDS)  # the one call with a short timeout
        state = present_state(kafka, name)
    except BrokerUnavailable:
        raise missing from None
    if (found := kept_definition(state)) is None:
        raise missing
    return state, found

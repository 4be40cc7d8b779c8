"""The streams of this project, as tests use them."""

import shutil
from pathlib import Path

from lozenge.contracts.avro import Codec
from lozenge.contracts.topics import Topic, Topics
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.stream_releases import ReleaseId
from lozenge.streams.folder import MAPPINGS, SAMPLES
from lozenge.streams.project import Streams
from lozenge_upstream.normalise.output_records import StreamOutput

FOLDER = Path(__file__).parents[1] / "upstream" / "streams"
STREAMS = Streams.of(FOLDER)
AUTH = STREAMS.get("auth")
AUTH_MAPPINGS = FOLDER / "auth" / MAPPINGS
RAW_JSON, RAW_ISO = "AUTH-JSON", "AUTH-ISO"
RELEASE = ReleaseId("r1", "d1")
"""Of the stream, where a test starts upstream's parts itself."""


def event_codec() -> Codec:
    """That of authorisations."""
    return Codec(AUTH.event_schema)


def with_json_alone(folder: Path) -> Path:
    """The streams of this project, copied into `folder`, where authorisations have one source: half to plan."""
    copied = folder / "streams"
    if not copied.exists():
        shutil.copytree(FOLDER, copied)
        for part in (MAPPINGS, SAMPLES):
            (copied / "auth" / part / "auth_iso8583.toml").unlink()
    return copied


def every_topic(topics: Topics, copies: tuple[str, ...] = AUTH.copies) -> list[Topic]:
    """The topics of a platform with the stream of authorisations."""
    return [*topics.platform_topics(), *AUTH.topics(topics, copies)]


def output(kafka: KafkaSettings, *copies: str) -> StreamOutput:
    """Where upstream writes authorisations on the platform `kafka`."""
    return StreamOutput(AUTH, kafka.topics, copies)

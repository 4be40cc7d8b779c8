"""Which stream a detector reads, by its declaration."""

from lozenge.detector.manifest import Manifest
from lozenge.errors import ConfigError, UsageError
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.project import Streams


def stream_of(declaration: Manifest, streams: Streams, origin: str) -> StreamDefinition:
    """The stream that a detector reads; raises ConfigError if there is no such stream, or it has no such key."""
    try:
        found = streams.get(declaration.stream)
    except UsageError as error:
        raise ConfigError(
            f"reading {origin}: 1 problem(s)", problems=[f"tool.lozenge.stream: {error.message}: {error.hint}"]
        ) from error
    if declaration.key and declaration.key not in found.keys:
        has = f"the stream {found.name} has no key {declaration.key!r}, only {', '.join(found.keys)}"
        raise ConfigError(f"reading {origin}: 1 problem(s)", problems=[f"tool.lozenge.key: {has}"])
    return found

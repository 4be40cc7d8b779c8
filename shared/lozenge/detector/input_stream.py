"""Which stream a detector reads, by its declaration."""

from collections.abc import Sequence

from lozenge.detector.manifest import Manifest
from lozenge.errors import ConfigError, UsageError
from lozenge.streams.alert_stream import alert_stream
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.merged import merged
from lozenge.streams.project import Streams


def stream_of(declaration: Manifest, streams: Streams, origin: str) -> StreamDefinition:
    """The stream that a detector reads, several merged by its key, or the alerts of another detector.

    Raises ConfigError if there is no such stream, if one has no such key, or if they do not fit together.
    """
    if declaration.alerts_of:
        return alert_stream(declaration.alerts_of, declaration.key)
    names, key = declaration.streams or (declaration.stream,), declaration.key
    found, problems = list[StreamDefinition](), list[str]()
    for name in names:
        try:
            found.append(streams.get(name))
        except UsageError as error:
            problems.append(f"tool.lozenge.stream{'s' * (len(names) > 1)}: {error.message}: {error.hint}")
        except ConfigError as error:  # the stream itself is wrong
            problems += error.problems
    if not problems and len(found) == 1 and key and key not in found[0].keys:
        has = f"the stream {found[0].name} has no key {key!r}, only {', '.join(found[0].keys)}"
        problems.append(f"tool.lozenge.key: {has}")
    try:
        if not problems:
            return together(found, key)
    except ConfigError as error:
        problems += [f"tool.lozenge.streams: {problem}" for problem in error.problems]
    raise ConfigError(f"reading {origin}: {len(problems)} problem(s)", problems=problems)


def together(streams: Sequence[StreamDefinition], key: str) -> StreamDefinition:
    """One stream as it is, several merged by `key`; raises ConfigError as `merged` does."""
    return merged(streams, key) if len(streams) > 1 else streams[0]

"""Sinks that are requested of a platform: what is wrong with them is said before they run, and not in a log."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from lozenge.cache.cached_topic import cached_topic
from lozenge.kafka.settings import KafkaSettings
from lozenge.near_names import near_hint
from lozenge.sink_declarations.cache_sink import CacheSink
from lozenge.sink_declarations.project import sink_named
from lozenge.streams.project import Streams


class RequestedSinks(NamedTuple):
    """Their names, each once and in order, and what may be an oversight."""

    names: list[str]
    warnings: list[str]


def requested_sinks(names: Iterable[str], streams: Streams) -> RequestedSinks:
    """The sinks of these names in the project of `streams`.

    Raises UsageError for a name that there is not; ConfigError for a declaration that is wrong, or that names a stream,
    key or field that there is not, or a variable that is not set.
    """
    sinks = {name: sink_named(streams.project, name) for name in sorted(set(names))}
    caches = [sink for sink in sinks.values() if isinstance(sink, CacheSink)]
    for cache in caches:
        cache.address()
        cached_topic(cache, KafkaSettings.load(), {each.name: each for each in streams.definitions})
    return RequestedSinks(
        [*sinks], [warning for cache in caches for warning in _unknown_detector(cache, streams.project)]
    )


def _unknown_detector(cache: CacheSink, project: Path) -> Iterator[str]:
    """That the detector of a cache is none of the project: a platform may have it all the same."""
    detector = cache.alerts_of or cache.state_of
    known = [file.parent.name for file in (project / "detectors").glob("*/pyproject.toml")]
    if detector and detector not in known:
        missing = f"{cache.app} waits for the {cache.reads}, and this project has no detector {detector}"
        yield "; ".join(filter(None, (missing, near_hint(detector, known))))

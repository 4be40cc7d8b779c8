"""A cache compared with its topic: of each key it has the latest event, and no key besides."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from lozenge.contracts.avro import Codec
from lozenge.kafka.settings import KafkaSettings
from lozenge.sink_declarations.cache_sink import CacheSink
from lozenge.streams.definition import StreamDefinition
from lozenge_deploy.demo.committed_records import each_committed
from lozenge_deploy.demo.reconciliation import Comparison
from lozenge_deploy.demo.sinks.cache_contents import values_of


class CacheCount(NamedTuple):
    """The `keys` of the topic, and how many of them have their latest event in the cache.

    `foreign` keys are only in the cache; `dead_letters` are of the sink.
    """

    keys: int
    latest: int
    foreign: int
    dead_letters: int


def cache_comparisons(sink: CacheSink, count: CacheCount) -> list[Comparison]:
    """The comparisons of one cache."""
    return [
        Comparison(f"{sink.app}: keys with their latest event", count.latest, count.keys),
        Comparison(f"{sink.app}: keys that no event has", count.foreign, 0),
        Comparison(f"{sink.app}: dead letters", count.dead_letters, 0),
    ]


def count_keys(kafka: KafkaSettings, sink: CacheSink, stream: StreamDefinition, url: str) -> CacheCount:
    """The counts of a cache of this stream at `url`; raises BrokerUnavailable, CacheUnavailable."""
    latest: dict[str, bytes] = {}
    events = stream.events(kafka.topics, sink.key)
    each_committed(kafka, events, lambda record: latest.update({record.key.decode(): record.value}))
    dead_letters = each_committed(kafka, kafka.topics.dead_letters(sink.app), lambda record: None)
    codec = Codec(stream.event_schema)
    expected = {key: _kept(codec.decode(value), sink) for key, value in latest.items()}
    cached = {key: msgspec.json.decode(value) for key, value in values_of(url, sink.name).items()}
    return compared(expected, cached, dead_letters)


def compared(
    expected: Mapping[str, Mapping[str, Any]], cached: Mapping[str, Mapping[str, Any]], dead_letters: int
) -> CacheCount:
    """Counts; `expected` are events, as they are decoded, `cached` are those of the cache, as their JSON says."""
    right = sum(key in cached and _is_same(event, cached[key]) for key, event in expected.items())
    return CacheCount(len(expected), right, len(cached.keys() - expected.keys()), dead_letters)


def _kept(event: Mapping[str, Any], sink: CacheSink) -> dict[str, Any]:
    return {name: value for name, value in event.items() if not sink.fields or name in sink.fields}


def _is_same(event: Mapping[str, Any], cached: Mapping[str, Any]) -> bool:
    return event.keys() == cached.keys() and all(_says(cached[name], value) for name, value in event.items())


def _says(found: Any, value: Any) -> bool:
    """Whether JSON has this value: times and decimals are texts there."""
    if isinstance(value, datetime):
        return isinstance(found, str) and datetime.fromisoformat(found) == value
    return bool(found == (str(value) if isinstance(value, Decimal) else value))

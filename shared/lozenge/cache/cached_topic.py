"""What a cache reads: a topic, and how a record of it becomes an entry."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from lozenge.cache.entries import CacheEntry
from lozenge.contracts.avro import Codec, UnknownSchema
from lozenge.contracts.schemas import Schema, newest
from lozenge.contracts.topics import Topics
from lozenge.detector.fold import Entry as StateEntry
from lozenge.errors import ConfigError, DecodeError
from lozenge.kafka.schema_topic import learn
from lozenge.kafka.settings import KafkaSettings
from lozenge.sink_declarations.cache_sink import CacheSink
from lozenge.streams.definition import StreamDefinition

MOST_KEY_BYTES = 1_000
"""An index of PostgreSQL takes some 2,700 bytes."""
_LAST_MOMENT = 253_402_300_799_000
"""The end of the year 9999: a producer may write any number as the timestamp of a record."""
_ALERT = "alert"
_STATE = msgspec.json.Decoder(StateEntry[Any])


class CachedTopic:
    """The topic `name`, and the entries of its records."""

    def __init__(self, name: str, reader: Schema | None, kafka: KafkaSettings, fields: Iterable[str] = ()) -> None:
        """`reader` is the schema as which records are read; without one they are entries of a fold's state."""
        self.name, self._kafka, self._reader = name, kafka, reader
        self._fields = frozenset(fields)
        self._codec = None if reader is None else Codec.of(_ALERT) if reader.name == _ALERT else Codec(reader)

    def entry(self, key: bytes | None, value: bytes | None, offset: int, at: int) -> CacheEntry:
        """The entry of a record, written at Unix milliseconds `at`; raises DecodeError for one that has none."""
        at = min(max(at, 0), _LAST_MOMENT)
        if self._codec is None:
            return CacheEntry(_state_key(key), None if value is None else _state(value), offset, at)
        return CacheEntry(_text_key(key), None if value is None else self._record(value), offset, at)

    def _record(self, value: bytes) -> str:
        record = self._decoded(value)
        kept = {name: each for name, each in record.items() if not self._fields or name in self._fields}
        return msgspec.json.encode(kept).decode()

    def _decoded(self, value: bytes) -> dict[str, Any]:
        assert self._codec is not None
        assert self._reader is not None
        try:
            return self._codec.decode(value)
        except UnknownSchema:
            for schema in learn(self._kafka, self._reader):
                self._codec.learn(schema)
            return self._codec.decode(value)


def cached_topic(sink: CacheSink, kafka: KafkaSettings, streams: Mapping[str, StreamDefinition]) -> CachedTopic:
    """The topic of a cache, which need not exist yet; raises ConfigError for a stream, key or field that is missing."""
    name, reader = _input(sink, kafka.topics, streams)
    problems = []
    if reader is not None:
        have = [field["name"] for field in reader.definition["fields"]]
        problems = [
            f"fields: there is no field {each}; there are {', '.join(have)}" for each in sink.fields if each not in have
        ]
    elif sink.fields:
        problems = ["fields: a state is kept as a whole"]
    if problems:
        raise _refused(sink, problems)
    return CachedTopic(name, reader, kafka, sink.fields)


def _input(sink: CacheSink, topics: Topics, streams: Mapping[str, StreamDefinition]) -> tuple[str, Schema | None]:
    if sink.state_of:
        return topics.detector(sink.state_of).state, None
    if sink.alerts_of:
        return topics.detector(sink.alerts_of).alerts, newest(_ALERT)
    stream = streams.get(sink.stream)
    if stream is None:
        raise _refused(sink, [f"stream: there is no stream {sink.stream}; there are {', '.join(sorted(streams))}"])
    if sink.key and sink.key not in stream.keys:
        raise _refused(sink, [f"key: {sink.stream} has no key {sink.key}; it has {', '.join(stream.keys)}"])
    return stream.events(topics, sink.key), stream.event_schema


def _refused(sink: CacheSink, problems: list[str]) -> ConfigError:
    return ConfigError(
        f"starting the cache {sink.name}: {len(problems)} problem(s)",
        problems=problems,
        hint=f"change the sink.toml of {sink.name}",
    )


def _text_key(key: bytes | None) -> str:
    if key is None:
        raise DecodeError("the record has no key")
    if len(key) > MOST_KEY_BYTES:
        raise DecodeError(f"its key has {len(key)} bytes; the most are {MOST_KEY_BYTES}")
    try:
        text = key.decode()
    except UnicodeDecodeError as error:
        raise DecodeError("its key is not UTF-8") from error
    if "\0" in text:
        raise DecodeError("its key has the character NUL, which PostgreSQL cannot store")
    return text


def _state_key(key: bytes | None) -> str:
    """The values of the fold's `by`: one as it is, several joined by `|`; the key of a fold is a list of JSON."""
    text = _text_key(key)
    try:
        parts = msgspec.json.decode(text, type=list[Any])
    except msgspec.DecodeError as error:
        raise DecodeError("its key is none of a fold") from error
    return "|".join(each if isinstance(each, str) else msgspec.json.encode(each).decode() for each in parts)


def _state(value: bytes) -> str:
    try:
        return msgspec.json.encode(_STATE.decode(value).state).decode()
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise DecodeError(f"its value is no state of a fold: {error}") from error

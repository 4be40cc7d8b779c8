"""A record becomes the JSON of its key, or says why it has none."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from lozenge.cache.cached_topic import CachedTopic, cached_topic
from lozenge.cache.entries import CacheEntry, latest
from lozenge.detector.fold import Entry as StateEntry
from lozenge.errors import ConfigError, DecodeError
from lozenge.kafka.settings import KafkaSettings
from lozenge.sink_declarations.cache_sink import CacheSink
from tests.integration.harness import EVENT, event
from tests.streams import AUTH

KAFKA = KafkaSettings(bootstrap="127.0.0.1:1")


def events(*fields: str) -> CachedTopic:
    return CachedTopic("events", AUTH.event_schema, KAFKA, fields)


def states() -> CachedTopic:
    return CachedTopic("states", None, KAFKA)


def declared(**more: Any) -> CacheSink:
    given = {"name": "c", "kind": "cache", "title": "C", "owner": "tests", "url": "redis://h"}
    return CacheSink.model_validate(given | more)


def test_an_event_is_the_json_of_its_fields() -> None:
    found = events().entry(b"card", EVENT.encode(event(7, card="card")), 3, 99)
    assert (found.key, found.offset, found.at) == ("card", 3, 99)
    value = json.loads(found.value or "")
    assert value["card_id"] == "card"
    assert isinstance(value["amount"], str), "a decimal is no float"
    assert value["event_time"].endswith("Z")


@pytest.mark.parametrize(("written", "kept"), [(-1, 0), (10**18, 253_402_300_799_000), (7, 7)])
def test_a_timestamp_that_is_no_time_becomes_one(written: int, kept: int) -> None:
    assert events().entry(b"card", None, 3, written).at == kept


def test_only_the_declared_fields_are_kept() -> None:
    found = events("amount", "card_id").entry(b"card", EVENT.encode(event(7, card="card")), 3, 99)
    assert list(json.loads(found.value or "")) == ["card_id", "amount"]


def test_a_state_is_kept_without_what_the_platform_keeps_with_it() -> None:
    value = msgspec.json.encode(StateEntry({"sum": "12.5"}, datetime(2026, 1, 1, tzinfo=UTC), (), b"xx"))
    assert states().entry(b'["card","EUR",7]', value, 1, 2) == CacheEntry("card|EUR|7", '{"sum":"12.5"}', 1, 2)


@pytest.mark.parametrize("topic", [events(), states()])
def test_a_record_without_a_value_deletes_its_key(topic: CachedTopic) -> None:
    assert topic.entry(b'["card"]', None, 1, 2).value is None


@pytest.mark.parametrize(
    ("topic", "key", "value", "problem"),
    [
        pytest.param(events(), None, b"", "no key", id="no key"),
        pytest.param(events(), b"\xff", b"", "UTF-8", id="a key that is no text"),
        pytest.param(events(), b"a\0b", b"", "NUL", id="a key with NUL"),
        pytest.param(events(), b"k" * 1001, b"", "1001 bytes", id="a long key"),
        pytest.param(events(), b"k", b"no event", "header", id="no Avro"),
        pytest.param(states(), b"k", b"{}", "none of a fold", id="a key of no fold"),
        pytest.param(states(), b'["k"]', b"{}", "no state", id="no state"),
    ],
)
def test_a_record_that_has_no_entry_says_why(topic: CachedTopic, key: bytes | None, value: bytes, problem: str) -> None:
    with pytest.raises(DecodeError, match=problem):
        topic.entry(key, value, 0, 0)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        pytest.param({"stream": "none"}, "there is no stream none; there are auth", id="an unknown stream"),
        pytest.param({"stream": "auth", "key": "none"}, "has no key none", id="an unknown key"),
        pytest.param({"stream": "auth", "fields": ("none",)}, "no field none", id="an unknown field"),
        pytest.param({"state_of": "d", "fields": ("sum",)}, "kept as a whole", id="a field of a state"),
    ],
)
def test_what_is_not_there_is_named(more: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        cached_topic(declared(**more), KAFKA, {"auth": AUTH})
    assert problem in "\n".join(refused.value.problems)


def test_the_last_entry_of_each_key_is_the_latest() -> None:
    made = [CacheEntry("a", "1", 1, 0), CacheEntry("b", "2", 2, 0), CacheEntry("a", None, 3, 0)]
    assert latest(made) == [CacheEntry("a", None, 3, 0), CacheEntry("b", "2", 2, 0)]

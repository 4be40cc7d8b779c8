"""A cache is compared with the latest events of its topic."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from lozenge.sink_declarations.cache_sink import CacheSink
from lozenge_deploy.demo.sinks.cache_check import CacheCount, cache_comparisons, compared

SINK = CacheSink(name="last", kind="cache", title="Last", owner="tests", url="redis://127.0.0.1", stream="auth")
EVENT = {
    "event_id": "e1",
    "event_time": datetime(2026, 3, 1, 12, 0, 0, 512_000, tzinfo=UTC),
    "amount": Decimal("41.90"),
    "place": None,
}
CACHED = msgspec.json.decode(msgspec.json.encode(EVENT))


def test_times_and_decimals_are_texts_in_the_cache() -> None:
    assert compared({"a": EVENT}, {"a": CACHED}, 0) == CacheCount(keys=1, latest=1, foreign=0, dead_letters=0)


@pytest.mark.parametrize(
    "change",
    [
        {"event_id": "e0"},
        {"amount": "41.9"},
        {"event_time": "2026-03-01T12:00:00.511Z"},
        {"event_time": None},
        {"place": ""},
        {"more": 1},
    ],
)
def test_an_older_or_another_event_is_not_the_latest(change: dict[str, Any]) -> None:
    assert compared({"a": EVENT}, {"a": {**CACHED, **change}}, 0).latest == 0


def test_missing_and_foreign_keys_and_dead_letters_are_wrong() -> None:
    count = compared({"a": EVENT, "b": EVENT}, {"a": CACHED, "c": CACHED}, 3)
    assert count == CacheCount(keys=2, latest=1, foreign=1, dead_letters=3)
    assert [each.ok for each in cache_comparisons(SINK, count)] == [False, False, False]
    assert [each.ok for each in cache_comparisons(SINK, CacheCount(2, 2, 0, 0))] == [True, True, True]

"""Alerts and stores for the notifier's tests."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lozenge import ids, topics
from lozenge.avro import Codec
from lozenge_downstream.model import Record
from lozenge_downstream.store import Store

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

MakeRecord = Callable[..., Record]


@pytest.fixture
def record() -> MakeRecord:
    """Builds the record of one alert; keywords change fields of the alert."""
    codec = Codec.of("alert")

    def make(number: int = 0, *, detector: str = "large_amount", topic: str | None = None, **fields: Any) -> Record:
        alert = {
            "alert_id": ids.alert_id(detector, "card", "card-7", str(number)),
            "detector": detector,
            "release": "r1",
            "settings_digest": "d1",
            "entity": {"type": "card", "id": "card-7"},
            "severity": "high",
            "score": 0.9,
            "title": "Large amount",
            "reason": "300.00 EUR is above 220.00",
            "evidence": {"event_ids": ["e1"], "values": {"limit": "220.00", "amount": "300.00"}},
            "event_time": NOON,
            "detected_at": NOON + timedelta(seconds=1),
            "labels": {},
        } | fields
        return Record(topic or topics.alerts(detector), 2, number, b"card-7", codec.encode(alert), [])

    return make


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of a store that does not exist yet."""
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """An empty store."""
    store = Store(url)
    yield store
    store.close()

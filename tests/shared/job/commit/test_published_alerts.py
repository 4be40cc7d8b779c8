"""The recovery read: which alerts a job in Real-Time Mode has published of events that are not committed."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from lozenge.errors import BrokerUnavailable
from lozenge.job.commit import published_alerts
from lozenge.job.commit.published_alerts import CLOCK_SKEW, published_since
from tests.shared.job.commit.scripted import KAFKA

WRITTEN = datetime(2026, 3, 1, 12, tzinfo=UTC)
OFFSETS = {0: 10, 1: 20}


class Topics:
    """The write times of events from the requested offsets on, and the alerts that are found since a moment."""

    def __init__(self, *alerts: list[tuple[str, bytes]] | None, **written: datetime) -> None:
        self._alerts = [SimpleNamespace(headers=lambda headers=headers: headers) for headers in alerts]
        self._written = {int(p.removeprefix("p")): at.timestamp() for p, at in written.items()}
        self.asked: list[tuple[str, Mapping[int, int]]] = []
        self.read: list[tuple[str, int, datetime]] = []

    def connect(self, patch: pytest.MonkeyPatch) -> "Topics":
        patch.setattr(published_alerts, "write_times", self._write_times)
        patch.setattr(published_alerts, "read_since", self._read_since)
        return self

    def _write_times(self, _: object, topic: str, offsets: Mapping[int, int]) -> dict[int, float]:
        self.asked.append((topic, offsets))
        return self._written

    def _read_since(self, _: object, topic: str, count: int, moment: datetime) -> list[Any]:
        self.read.append((topic, count, moment))
        return self._alerts


def test_alerts_are_read_from_the_oldest_uncommitted_event_on_less_the_skew_of_clocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topics = Topics(p0=WRITTEN + timedelta(hours=1), p1=WRITTEN).connect(monkeypatch)
    published_since(KAFKA, "events", OFFSETS, "alerts")
    assert topics.asked == [("events", OFFSETS)]
    assert topics.read == [("alerts", KAFKA.partitions, WRITTEN - CLOCK_SKEW)]


def test_the_ids_are_those_in_the_headers_and_other_records_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    named = [("ce_source", b"/detectors/spotter"), ("ce_id", b"one")]
    Topics(named, None, [("ce_type", b"x")], [("ce_id", b"two")], p0=WRITTEN).connect(monkeypatch)
    assert published_since(KAFKA, "events", OFFSETS, "alerts") == {"one", "two"}


def test_without_an_uncommitted_event_no_alert_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = Topics([("ce_id", b"one")]).connect(monkeypatch)
    assert published_since(KAFKA, "events", OFFSETS, "alerts") == frozenset()
    assert topics.read == []


def test_a_broker_that_does_not_answer_is_not_taken_for_no_alerts(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> list[Any]:
        raise BrokerUnavailable("nobody answers")

    Topics(p0=WRITTEN).connect(monkeypatch)
    monkeypatch.setattr(published_alerts, "read_since", away)
    with pytest.raises(BrokerUnavailable):
        published_since(KAFKA, "events", OFFSETS, "alerts")

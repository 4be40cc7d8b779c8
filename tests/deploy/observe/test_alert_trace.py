"""The origin of an alert in topics of a script: through other alerts, back to the raw records."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME

from lozenge.contracts.avro import Codec
from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.observe import alert_trace
from lozenge_deploy.observe.alert_trace import GONE, MOST_ALERTS, Causes, Position, trace_of
from tests.alert_streams import alert
from tests.integration.harness import event
from tests.streams import AUTH, event_codec

KAFKA = KafkaSettings(bootstrap="127.0.0.1:1")
CODEC = Codec.of("alert")
EVENTS, LARGE, SERIES, MERCHANTS = (
    "pay.canonical.auth.v1",
    "pay.alerts.large_amount.v1",
    "pay.alerts.large_series.v1",
    "pay.canonical.auth.by-merchant.v1",
)
INPUTS = {"large_amount": EVENTS, "large_series": LARGE}


class Topics:
    """Records by their positions; `alerts` are the positions that the notifier knows by the alert's id."""

    def __init__(self) -> None:
        self.records: dict[Position, bytes] = {}
        self.alerts: dict[str, Position] = {}
        self.inputs: dict[str, str] = dict(INPUTS)

    def read(self, kafka: KafkaSettings, *position: Any) -> Any:
        if (value := self.records.get(position)) is None:
            return None
        return SimpleNamespace(value=lambda: value, timestamp=lambda: (TIMESTAMP_CREATE_TIME, 1_772_366_400_000))

    def pay(self, number: int, topic: str = EVENTS) -> None:
        """An event at this offset, and its raw record."""
        self.records[topic, 1, number] = event_codec().encode(event(number))
        self.records["AUTH-JSON", 0, number] = b"{}"

    def raise_alert(self, number: int, topic: str = LARGE, **fields: Any) -> Position:
        """An alert at this offset, which the notifier has received."""
        given = alert(number, **fields)
        self.records[topic, 1, number] = CODEC.encode(given)
        self.alerts[given["alert_id"]] = position = (topic, 1, number)
        return position

    def trace(self, position: Position) -> list[tuple[str, str]]:
        """What and where of each step."""
        causes = Causes(lambda detector, release: self.inputs.get(detector), self.alerts.get)
        return [(step["what"], step["where"]) for step in trace_of(KAFKA, position, causes)]


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> Topics:
    found = Topics()
    monkeypatch.setattr(alert_trace, "record_at", found.read)
    monkeypatch.setattr(alert_trace, "settle_ids", lambda *_: [AUTH.event_schema])
    monkeypatch.setattr(alert_trace, "partitions", lambda _: dict.fromkeys((EVENTS, MERCHANTS, LARGE, SERIES), 4))
    return found


def series(topics: Topics, *evidence: str, trigger: int | None = None) -> Position:
    """An alert of alerts."""
    at = {"partition": 1, "offset": trigger} if trigger is not None else None
    values = {"event_ids": list(evidence), "values": {}}
    return topics.raise_alert(9, SERIES, detector="large_series", evidence=values, trigger=at)


def origin(number: int) -> list[tuple[str, str]]:
    return [
        ("raw record", f"AUTH-JSON 0:{number}"),
        ("event", f"{EVENTS} 1:{number}"),
        ("alert", f"{LARGE} 1:{number}"),
    ]


def test_an_alert_of_alerts_leads_to_these_and_each_to_its_event(topics: Topics) -> None:
    for number in (1, 2):
        topics.pay(number)
        topics.raise_alert(number)
    found = series(topics, "alert-1", "alert-2", trigger=2)
    assert topics.trace(found) == [*origin(1), *origin(2), ("alert", f"{SERIES} 1:9")]


def test_the_alert_that_triggered_it_needs_no_notifier_and_a_window_needs_no_trigger(topics: Topics) -> None:
    topics.pay(1)
    topics.raise_alert(1)
    window = topics.trace(series(topics, "alert-1"))
    topics.alerts.clear()
    assert topics.trace(series(topics, "alert-1", trigger=1)) == window == [*origin(1), ("alert", f"{SERIES} 1:9")]


def test_a_chain_of_any_length_is_followed(topics: Topics) -> None:
    topics.pay(1)
    topics.raise_alert(1)
    topics.inputs["third"] = SERIES
    series(topics, "alert-1", trigger=1)
    last = topics.raise_alert(11, "pay.alerts.third.v1", detector="third", trigger={"partition": 1, "offset": 9})
    steps = topics.trace(last)
    assert steps == [*origin(1), ("alert", f"{SERIES} 1:9"), ("alert", "pay.alerts.third.v1 1:11")]


def test_what_is_gone_says_so_and_what_is_behind_it_is_not_known(topics: Topics) -> None:
    found = trace_of(KAFKA, series(topics, "alert-1", trigger=1), Causes(lambda d, _: INPUTS.get(d), topics.alerts.get))
    assert (found[0]["what"], found[0]["detail"]) == ("alert", GONE)
    assert len(found) == 2


def test_the_newest_of_much_evidence_are_followed(topics: Topics) -> None:
    for number in range(100, 130):
        topics.raise_alert(number, trigger=None)
    found = series(topics, *(f"alert-{number}" for number in range(100, 130)))
    assert [where for _, where in topics.trace(found)] == [
        *(f"{LARGE} 1:{number}" for number in range(130 - MOST_ALERTS, 130)),
        f"{SERIES} 1:9",
    ]


def test_the_input_of_a_release_decides_between_events_at_one_position(topics: Topics) -> None:
    topics.pay(1)
    topics.pay(1, MERCHANTS)
    assert ("event", f"{EVENTS} 1:1") in topics.trace(topics.raise_alert(1))
    topics.inputs["large_amount"] = MERCHANTS
    assert ("event", f"{MERCHANTS} 1:1") in topics.trace(topics.raise_alert(1))
    topics.inputs.clear()
    assert ("event", f"{EVENTS} 1:1") in topics.trace(topics.raise_alert(1)), "of the key that the alert names"

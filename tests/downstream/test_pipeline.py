"""Every stage's decision and its reason."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from lozenge import topics
from lozenge.avro import Codec
from lozenge.headers import TRACEPARENT
from lozenge.partitions import partition_of
from lozenge.schemas import Schema, newest
from lozenge_downstream.config import Route
from lozenge_downstream.model import Decision, Outcome, Reason, Record
from lozenge_downstream.pipeline import DEAD_LETTERS, Pipeline, text

MakeRecord = Callable[..., Record]
NOW = datetime(2026, 3, 1, 12, 0, 2, tzinfo=UTC)
EVERYTHING = Route(name="all", webhooks=("ops",))


def decide(
    records: Sequence[Record], routes: Sequence[Route] = (EVERYTHING,), seen: set[str] | None = None
) -> list[Decision]:
    taken: Counter[tuple[str, int]] = Counter()

    def number(topic: str, partition: int) -> int:
        taken[topic, partition] += 1
        return taken[topic, partition] - 1

    return Pipeline(routes).run(records, seen=lambda _: seen or set(), number=number, now=NOW)


def fields(decision: Decision) -> dict[str, Any]:
    assert decision.outgoing is not None
    return Codec.of("notification").decode(decision.outgoing.value)


def test_an_alert_becomes_a_notification(record: MakeRecord) -> None:
    (decision,) = decide([record()])
    assert (decision.outcome, decision.reason) == (Outcome.NOTIFIED, Reason.FIRST)
    sent = decision.outgoing
    assert sent is not None
    assert (sent.topic, sent.key, sent.seq) == (topics.NOTIFICATIONS, b"card:card-7", 0)
    assert sent.partition == partition_of(b"card:card-7", topics.EVENT_PARTITIONS)
    headers = dict(sent.headers)
    assert headers["ce_type"] == b"lozenge.notification.v1"
    assert headers["ce_id"] == sent.id.encode()
    assert headers[TRACEPARENT]
    told = fields(decision)
    assert told["status"] == "opened"
    assert told["routes"] == ["all"]
    assert told["alert_ids"] == [decision.alert_id]
    assert told["text"] == "300.00 EUR is above 220.00\n- amount: 300.00\n- limit: 220.00\n- event e1"


def test_the_webhook_tells_the_same(record: MakeRecord) -> None:
    (decision,) = decide([record()])
    (message,) = decision.messages
    body = msgspec.json.decode(message.body)
    assert (body["type"], body["timestamp"]) == ("lozenge.notification.opened", "2026-03-01T12:00:02Z")
    assert body["data"]["notification_id"] == message.notification_id == decision.notification_id
    assert body["data"]["entity"] == {"type": "card", "id": "card-7"}
    assert (body["data"]["detector"], body["data"]["seq"]) == ("large_amount", 0)


def test_ids_are_the_same_on_every_run(record: MakeRecord) -> None:
    first, again = decide([record()]), decide([record()])
    assert first == again


def test_a_repeat_collapses_in_the_batch_and_from_memory(record: MakeRecord) -> None:
    one, two = decide([record(1), record(1)])
    assert (one.outcome, two.outcome) == (Outcome.NOTIFIED, Outcome.COLLAPSED)
    assert two.outgoing is None
    (later,) = decide([record(1)], seen={str(one.alert_id)})
    assert (later.outcome, later.reason) == (Outcome.COLLAPSED, Reason.REPEAT)


def test_the_trace_of_the_alert_goes_on(record: MakeRecord) -> None:
    trace = b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01"
    plain = record()
    (decision,) = decide([Record(plain.topic, 0, 0, plain.key, plain.value, [(TRACEPARENT, trace)])])
    assert decision.outgoing is not None
    assert dict(decision.outgoing.headers)[TRACEPARENT] == trace


@pytest.mark.parametrize(
    ("route", "takes"),
    [
        (Route(name="r", webhooks=(), severity="high"), True),
        (Route(name="r", webhooks=(), severity="critical"), False),
        (Route(name="r", webhooks=(), detectors=frozenset({"large_amount"})), True),
        (Route(name="r", webhooks=(), detectors=frozenset({"card_velocity"})), False),
    ],
)
def test_a_route_matches_by_detector_and_severity(record: MakeRecord, route: Route, takes: bool) -> None:
    (decision,) = decide([record()], [route])
    assert fields(decision)["routes"] == (["r"] if takes else [])


def test_an_unknown_severity_passes_every_limit(record: MakeRecord) -> None:
    (decision,) = decide([record(severity="dire")], [Route(name="r", webhooks=("ops",), severity="critical")])
    assert len(decision.messages) == 1


def test_two_routes_to_one_webhook_send_once(record: MakeRecord) -> None:
    (decision,) = decide([record()], [EVERYTHING, Route(name="more", webhooks=("ops", "chat"))])
    assert fields(decision)["routes"] == ["all", "more"]
    assert [m.webhook for m in decision.messages] == ["ops", "chat"]


@pytest.mark.parametrize("value", [None, b"", b"not avro", b"\0\0\0\0\2cut off", b"\0\0\0\x27\x0f unknown id"])
def test_what_cannot_be_read_is_a_dead_letter_byte_for_byte(value: bytes | None) -> None:
    poison = Record("pay.alerts.large_amount.v1", 3, 17, b"k", value, [("h", b"\xff\0")])
    (decision,) = decide([poison])
    assert decision.outcome is Outcome.DEAD_LETTER
    sent = decision.outgoing
    assert sent is not None
    assert (sent.topic, sent.key, sent.value) == (DEAD_LETTERS, b"k", value)
    headers = dict(sent.headers)
    assert headers["h"] == b"\xff\0"
    assert headers["__connect.errors.stage"] == b"decode"
    assert headers["__connect.errors.offset"] == b"17"


def test_a_detector_cannot_speak_for_another(record: MakeRecord) -> None:
    (decision,) = decide([record(topic="pay.alerts.card_velocity.v1")])
    assert decision.outcome is Outcome.DEAD_LETTER
    assert "'large_amount'" in decision.reason


def test_a_new_schema_is_learned_and_an_unknown_one_asked_for_once(record: MakeRecord) -> None:
    asked = 0

    def learn() -> list[Schema]:
        nonlocal asked
        asked += 1
        return [Schema(77, "alert", 2, newest("alert").text)]

    value = record().value
    assert value is not None
    framed = [value[:1] + number.to_bytes(4, "big") + value[5:] for number in (77, 78, 78)]
    records = [Record("pay.alerts.large_amount.v1", 0, offset, b"k", data, []) for offset, data in enumerate(framed)]
    decided = Pipeline([EVERYTHING], learn).run(records, seen=lambda _: set(), number=lambda *_: 0, now=NOW)
    assert [d.outcome for d in decided] == [Outcome.NOTIFIED, Outcome.DEAD_LETTER, Outcome.DEAD_LETTER]
    assert asked == 2


def test_text_is_bounded_and_says_what_it_left_out() -> None:
    evidence = {"event_ids": [f"e{n}" for n in range(40)], "values": {}}
    told = text({"reason": "x" * 9000, "evidence": evidence})
    assert len(told) <= 8010
    assert text({"reason": "many", "evidence": evidence}).endswith("- and 28 more")

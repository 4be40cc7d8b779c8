"""How each record that arrives is decoded and classified."""

import random
from collections.abc import Callable

import pytest

from lozenge.contracts.headers import TRACEPARENT
from lozenge.contracts.schemas import Schema, newest
from lozenge.contracts.topics import Topics
from lozenge_downstream.ingest.decode import DUPLICATE, MAX_ID, NEW, AlertDecoder, text
from lozenge_downstream.model import Classification, ReceivedAlert, ReceivedRecord
from tests.downstream.conftest import Desk

MakeRecord = Callable[..., ReceivedRecord]


def classify(
    *records: ReceivedRecord, seen: set[str] | None = None, remaining: int = 100, decoder: AlertDecoder | None = None
) -> list[ReceivedAlert]:
    decoder = decoder or AlertDecoder(Topics())
    return decoder.classify(
        decoder.decode(records),
        seen=lambda _: seen or set(),
        remaining=lambda detectors: dict.fromkeys(detectors, remaining),
        number=lambda *_: 0,
        now=5.0,
    )


def test_an_alert_is_accepted_with_the_labels_that_it_is_routed_by(record: MakeRecord) -> None:
    (received,) = classify(record(labels={"team": "red", "detector": "another"}))
    assert (received.outcome, received.reason) == (Classification.ACCEPTED, NEW)
    assert received.alert is not None
    assert received.alert.labels == {
        "team": "red",
        "detector": "large_amount",
        "release": "r1",
        "severity": "high",
        "entity_type": "card",
        "entity": "card:card-7",
    }
    assert received.alert.text == "300.00 EUR is above 220.00\n- amount: 300.00\n- limit: 220.00\n- event e1"


def test_a_repeated_alert_is_a_duplicate_within_a_batch_and_across_batches(record: MakeRecord) -> None:
    one, two = classify(record(1), record(1))
    assert (one.outcome, two.outcome, two.reason) == (Classification.ACCEPTED, Classification.DUPLICATE, DUPLICATE)
    assert one.alert is not None
    (later,) = classify(record(1), seen={one.alert.id})
    assert later.outcome is Classification.DUPLICATE


def test_alerts_beyond_the_rate_limit_of_their_detector_are_rate_limited(record: MakeRecord) -> None:
    other = record(9, detector="card_velocity")
    outcomes = [a.outcome for a in classify(record(0), record(1), record(1), record(2), other, remaining=2)]
    assert outcomes == ["accepted", "accepted", "duplicate", "rate limited", "accepted"]


def test_the_trace_of_the_alert_continues(record: MakeRecord) -> None:
    trace = b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01"
    plain = record()
    (received,) = classify(ReceivedRecord(plain.topic, 0, 0, plain.key, plain.value, [(TRACEPARENT, trace)]))
    assert received.alert is not None
    assert received.alert.traceparent == trace.decode()


@pytest.mark.parametrize("value", [None, b"", b"not avro", b"\0\0\0\0\2cut off", b"\0\0\0\x27\x0f unknown id"])
def test_a_record_that_cannot_be_decoded_is_a_dead_letter_byte_for_byte(value: bytes | None) -> None:
    (received,) = classify(ReceivedRecord("pay.alerts.large_amount.v1", 3, 17, b"k", value, [("h", b"\xff\0")]))
    assert received.outcome is Classification.DEAD_LETTER
    sent = received.dead_letter
    assert sent is not None
    assert (sent.topic, sent.key, sent.value) == (Topics().dead_letters("downstream"), b"k", value)
    headers = dict(sent.headers)
    assert headers["h"] == b"\xff\0"
    assert headers["__connect.errors.stage"] == b"decode"
    assert headers["__connect.errors.offset"] == b"17"


def test_an_id_that_no_store_takes_is_a_dead_letter_and_good_alerts_next_to_it_are_taken(
    desk: Desk, record: MakeRecord
) -> None:
    huge = random.Random(4711).randbytes(20_000).hex()
    received = desk.take(record(0, alert_id=huge), record(1), record(2, alert_id="x" * MAX_ID))
    assert [each.outcome for each in received] == ["dead letter", "accepted", "accepted"]
    assert "the alert_id has 40000 characters" in received[0].reason


def test_an_alert_of_another_detector_than_its_topics_is_refused(record: MakeRecord) -> None:
    (received,) = classify(record(topic="pay.alerts.card_velocity.v1"))
    assert received.outcome is Classification.DEAD_LETTER
    assert "'large_amount'" in received.reason


def test_a_new_schema_is_read_and_an_unknown_one_is_looked_up_once(record: MakeRecord) -> None:
    asked = 0

    def learn() -> list[Schema]:
        nonlocal asked
        asked += 1
        return [Schema(77, "alert", 2, newest("alert").text)]

    value = record().value
    assert value is not None
    framed = [value[:1] + number.to_bytes(4, "big") + value[5:] for number in (77, 78, 78)]
    records = [
        ReceivedRecord("pay.alerts.large_amount.v1", 0, offset, b"k", data, []) for offset, data in enumerate(framed)
    ]
    outcomes = [a.outcome for a in classify(*records, decoder=AlertDecoder(Topics(), learn))]
    assert outcomes == [Classification.ACCEPTED, Classification.DEAD_LETTER, Classification.DEAD_LETTER]
    assert asked == 2


def test_text_is_bounded_and_says_how_much_was_cut() -> None:
    evidence = {"event_ids": [f"e{n}" for n in range(40)], "values": {}}
    shown = text({"reason": "x" * 9000, "evidence": evidence})
    assert len(shown) <= 4010
    assert text({"reason": "many", "evidence": evidence}).endswith("- and 28 more")


@pytest.mark.parametrize("field", ["alert_id", "release", "severity"])
def test_an_alert_that_cannot_be_stored_is_a_dead_letter(record: MakeRecord, field: str) -> None:
    (received,) = classify(record(**{field: "a\0b"}))
    assert (received.outcome, received.reason) == (
        Classification.DEAD_LETTER,
        f"reading {record().topic}: {field} of the alert has a NUL",
    )


def test_an_alert_without_an_id_is_a_dead_letter(record: MakeRecord) -> None:
    (received,) = classify(record(alert_id=""))
    assert received.outcome is Classification.DEAD_LETTER


@pytest.mark.parametrize(
    ("given", "score"),
    [(float("nan"), 0.0), (float("inf"), 1.0), (float("-inf"), 0.0), (-1.0, 0.0), (7.0, 1.0), (0.5, 0.5)],
)
def test_a_score_is_a_number_from_0_to_1_whatever_the_record_holds(
    record: MakeRecord, given: float, score: float
) -> None:
    (received,) = classify(record(score=given))
    assert received.alert is not None
    assert received.alert.score == score

"""Whatever may go wrong between input and output has a name, and a run in which nothing went wrong has none."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest

from tests.faults import findings, oracle
from tests.faults.findings import Alert, CopiedRow, Finding, Notification, Receipt
from tests.faults.records import Sort, record

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
MICROS = int(START.timestamp() * 1_000_000)
RAW = {(n % 4, n // 4): record(1, n, MICROS + n * 1000) for n in range(4000)}
PAYMENTS = {position: oracle.payment(position, raw.value, MICROS // 1000) for position, raw in RAW.items()}
NUMBERS = {(n % 4, n // 4): n for n in range(4000)}
RECEIPTS = [Receipt(n, position) for position, n in NUMBERS.items()]
EVENTS = [(p.position, p.event_id, p.card_id) for p in PAYMENTS.values() if p]
DEAD = [position for position, payment in PAYMENTS.items() if payment is None]
EXPECTED = oracle.alerts(p for p in PAYMENTS.values() if p)
ALERTS = [Alert(e.alert_id, e.evidence, e.values) for e in EXPECTED["each_large"]]
NOTIFICATIONS = [Notification(n % 2, n // 2, f"n{n}", (alert.alert_id,)) for n, alert in enumerate(ALERTS)]
DELIVERED = [(n.notification_id, n.notification_id) for n in NOTIFICATIONS]


def names(found: Iterable[Finding]) -> list[str]:
    return [finding.name for finding in found]


def test_where_nothing_went_wrong_nothing_is_found() -> None:
    assert len(ALERTS) > 10
    assert DEAD
    assert names(findings.in_raw(RECEIPTS, NUMBERS)) == []
    assert names(findings.of_upstream(PAYMENTS, EVENTS, DEAD)) == []
    assert names(findings.of_detector("each_large", EXPECTED["each_large"], ALERTS)) == []
    assert names(findings.of_notifier([a.alert_id for a in ALERTS], NOTIFICATIONS)) == []
    assert names(findings.of_webhook([n.notification_id for n in NOTIFICATIONS], [*DELIVERED, DELIVERED[0]])) == []


def test_an_acknowledged_record_that_is_not_there_is_a_lost_write() -> None:
    assert names(findings.in_raw(RECEIPTS, {position: n for position, n in NUMBERS.items() if n != 7})) == [
        "lost-write"
    ]
    assert names(findings.in_raw(RECEIPTS, NUMBERS | {(0, 1000): 7})) == ["duplicate"]
    assert names(findings.in_raw(RECEIPTS, NUMBERS | {(0, 1000): 4000})) == ["unexpected"]


WRITTEN = {"a:0": "t0", "a:1": "t1", "b:0": "t2"}
COPIED = [CopiedRow((0, 0), "a:0", "t0"), CopiedRow((0, 1), "b:0", "t2"), CopiedRow((0, 2), "a:1", "t1")]


def test_each_row_of_a_file_is_one_record_in_the_order_of_its_file() -> None:
    first, other, last = COPIED

    def found(*copied: CopiedRow) -> list[str]:
        return names(findings.in_files(WRITTEN, copied))

    assert found(*COPIED) == []
    assert found(first, last) == ["unseen"]
    assert found(*COPIED, last._replace(position=(1, 0))) == ["duplicate"]
    assert found(last, first, other) == ["out-of-order"]
    assert found(last._replace(position=(1, 0)), first, other) == []
    assert found(first, other, last._replace(txn_id="t9")) == ["unexpected"]
    assert found(*COPIED, CopiedRow((0, 3), "c:0", "t0")) == ["unexpected"]


def test_lost_repeated_and_misclassified_records_of_upstream_are_found() -> None:
    def found(events: list[tuple[oracle.PartitionOffset, str, str]], dead: list[oracle.PartitionOffset]) -> list[str]:
        return names(findings.of_upstream(PAYMENTS, events, dead))

    assert found(EVENTS[1:], DEAD) == ["unseen"]
    assert found(EVENTS, DEAD[1:]) == ["unseen"]
    assert found([*EVENTS, EVENTS[-1]], DEAD) == ["duplicate"]
    assert found(EVENTS, [*DEAD, DEAD[0]]) == ["duplicate"]
    assert found(EVENTS, [*DEAD, EVENTS[0][0]]) == ["unexpected"]
    assert found([*EVENTS, ((9, 9), "e", "c")], DEAD) == ["unexpected"]
    assert found([(EVENTS[0][0], "another", EVENTS[0][2]), *EVENTS[1:]], DEAD) == ["unexpected"]


def test_an_event_before_an_earlier_one_of_its_card_is_out_of_order() -> None:
    card = EVENTS[0][2]
    later = next(n for n, event in enumerate(EVENTS) if n and event[2] == card)
    swapped = [EVENTS[later], *EVENTS[1:later], EVENTS[0], *EVENTS[later + 1 :]]
    assert "out-of-order" in names(findings.of_upstream(PAYMENTS, swapped, DEAD))


def test_lost_repeated_and_wrong_alerts_of_a_detector_are_found() -> None:
    def found(alerts: list[Alert]) -> list[str]:
        return names(findings.of_detector("each_large", EXPECTED["each_large"], alerts))

    first, *others = ALERTS
    assert found(others) == ["unseen"]
    assert found([*ALERTS, first]) == ["duplicate"]
    assert sorted(found([*ALERTS, first._replace(alert_id="another")])) == ["duplicate", "unexpected"]
    assert found([*ALERTS, Alert("another", ("e",), ())]) == ["unexpected"]
    assert found([first._replace(evidence=("another",)), *others]) == ["unexpected"]


@pytest.mark.parametrize("fault", ["lost", "twice", "swapped"])
def test_one_event_that_is_lost_repeated_or_swapped_changes_the_alert_of_a_count(fault: str) -> None:
    [card] = {p.card_id for p in PAYMENTS.values() if p and p.position == (0, 1)}
    own = [p for p in PAYMENTS.values() if p and p.card_id == card][:1] * 50
    events = [p._replace(position=(0, n), event_id=f"e{n}") for n, p in enumerate(own)]
    processed = {
        "lost": [*events[:3], *events[4:], events[3]._replace(position=(0, 50), event_id="e50")],
        "twice": [*events[:3], events[3], *events[3:49]],
        "swapped": [*events[:3], events[4], events[3], *events[5:]],
    }[fault]
    processed = [p._replace(position=(0, n)) for n, p in enumerate(processed)]
    [expected], [found] = oracle.alerts(events)["steady_count"], oracle.alerts(processed)["steady_count"]
    alert = Alert(expected.alert_id, expected.evidence, found.values)
    assert names(findings.of_detector("steady_count", [expected], [alert])) == ["unexpected"]


def test_the_notifier_is_seen_to_lose_repeat_and_leave_gaps() -> None:
    alert_ids = [alert.alert_id for alert in ALERTS]

    def found(notifications: list[Notification]) -> list[str]:
        return names(findings.of_notifier(alert_ids, notifications))

    assert sorted(found([NOTIFICATIONS[0], NOTIFICATIONS[1], *NOTIFICATIONS[3:]])) == ["gap", "unseen"]
    assert sorted(found([*NOTIFICATIONS, NOTIFICATIONS[0]])) == ["duplicate", "duplicate", "gap"]
    assert "gap" in found([NOTIFICATIONS[2], NOTIFICATIONS[1], NOTIFICATIONS[0], *NOTIFICATIONS[3:]])
    assert found([*NOTIFICATIONS, Notification(5, 0, "n", ("another",))]) == ["unexpected"]
    alarm = Notification(5, 0, "n", ("another",), is_alarm=True)
    assert found([*NOTIFICATIONS, alarm]) == []
    assert "duplicate" in found([*NOTIFICATIONS, alarm, alarm])


def test_a_webhook_that_never_came_or_changed_its_id_is_found() -> None:
    asked = [n.notification_id for n in NOTIFICATIONS]
    assert names(findings.of_webhook(asked, DELIVERED[1:])) == ["unseen"]
    assert names(findings.of_webhook(asked, [*DELIVERED, ("another", asked[0])])) == ["unexpected"]
    assert names(findings.of_webhook(asked, [*DELIVERED, ("another", "another")])) == ["unexpected"]


def test_declines_are_counted_in_windows_of_ten_minutes() -> None:
    payment = oracle.Payment((0, 0), "", "card", START, PAYMENTS[0, 0].amount, True)  # type: ignore[union-attr]
    times = [0, 1, 9, 9.5, 10, 11, 12, 31]
    declined = [
        payment._replace(position=(0, n), event_id=f"e{n}", at=START + timedelta(minutes=m))
        for n, m in enumerate(times)
    ]
    raised = oracle.alerts(declined)["declined_often"]
    assert [alert.evidence for alert in raised] == [("e0", "e1", "e2"), ("e4", "e5", "e6")]


@pytest.mark.parametrize("sort", [Sort.AHEAD, Sort.POISON])
def test_what_must_be_a_dead_letter_is_known(sort: Sort) -> None:
    raws = [record(1, n, MICROS, sort) for n in range(200)]
    assert [oracle.payment((0, 0), raw.value, MICROS // 1000) for raw in raws] == [None] * 200


def test_a_day_behind_is_a_payment_like_any_other() -> None:
    raw = record(1, 1, MICROS, Sort.BEHIND)
    payment = oracle.payment((0, 0), raw.value, MICROS // 1000)
    assert payment
    assert payment.at == START - timedelta(days=1)
    assert json.loads(raw.value)["result"] == "approved"


PLACES = [(0, 0), (0, 1), (1, 4)]


def test_a_table_with_each_record_once_has_no_finding() -> None:
    assert names(findings.in_table("t", PLACES, PLACES, [])) == []
    assert names(findings.in_table("t", PLACES, PLACES[:2], PLACES[2:])) == []


@pytest.mark.parametrize(
    ("rows", "dead_letters", "what"),
    [
        (PLACES[1:], [], "unseen"),
        ([*PLACES, PLACES[0]], [], "duplicate"),
        (PLACES, PLACES[:1], "duplicate"),
        ([*PLACES, (2, 0)], [], "unexpected"),
    ],
)
def test_a_record_that_a_table_lacks_or_repeats_is_found(
    rows: list[oracle.PartitionOffset], dead_letters: list[oracle.PartitionOffset], what: str
) -> None:
    assert names(findings.in_table("t", PLACES, rows, dead_letters)) == [what]


def test_an_older_event_a_missing_key_and_a_foreign_key_of_a_cache_are_found() -> None:
    latest = {"a": "e3", "b": "e2"}
    assert names(findings.in_cache(latest, latest)) == []
    assert names(findings.in_cache(latest, {"a": "e1", "b": "e2"})) == ["unexpected"]
    assert names(findings.in_cache(latest, {"a": "e3"})) == ["unseen"]
    assert names(findings.in_cache(latest, {**latest, "c": "e9"})) == ["unexpected"]

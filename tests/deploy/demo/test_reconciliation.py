import io
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from rich.console import Console

from lozenge.contracts import ids
from lozenge.contracts.topics import Topics
from lozenge_deploy.demo.feed.cases import KINDS, TAKEOVER
from lozenge_deploy.demo.feed.malformed_records import REASONS
from lozenge_deploy.demo.reconciliation import (
    NOT_IN_EVERY_EVENT,
    REJECTIONS,
    SOURCE,
    Comparison,
    ReportedCase,
    Summary,
    as_rows,
    match,
    reconcile,
    table,
)
from lozenge_deploy.demo.topic_counts import CountedAlert, LoginCounts, TopicCounts
from lozenge_deploy.releases.build import CHECKOUT
from lozenge_deploy.releases.detector_catalog import detectors_in
from tests.streams import AUTH

TOPICS = Topics()

COPY = "terminal"


def event(txn_id: str) -> str:
    return ids.event_id(SOURCE, txn_id)


def summary() -> Summary:
    cases = [
        ReportedCase(kind="large_amount", txn_ids=("t1",)),
        ReportedCase(kind="duplicate_charge", txn_ids=("t2", "t3")),
    ]
    return Summary(sent=10, failed=0, malformed={"invalid_json": 1, "not_an_object": 1}, cases=cases)


def counts(**changed: Any) -> TopicCounts:
    whole = TopicCounts(
        raw=10,
        events=8,
        event_ids=8,
        copies={COPY: (8, 8)},
        rejected=Counter({"invalid-json": 2}),
        processed={"large_amount": (8, 8), "duplicate_charge": (8, 8)},
        alerts={
            "large_amount": [CountedAlert("a1", frozenset({event("t1")}))],
            "duplicate_charge": [CountedAlert("a2", frozenset({event("t2"), event("t3")}))],
        },
        notified=["a1", "a2"],
        notification_ids={"n1", "n2"},
        dead_letters={"large_amount": 0, "duplicate_charge": 0, "downstream": 0},
        webhooks={"received": 3, "distinct": 2, "repeats": 1, "invalid": 0},
    )
    return replace(whole, **changed)


def wrong(**changed: Any) -> list[str]:
    return [check.name for check in reconcile(counts(**changed), summary()) if not check.ok]


def test_a_complete_run_reconciles() -> None:
    assert wrong() == []


def test_payments_in_files_are_expected_among_the_raw_records() -> None:
    half = summary().model_copy(update={"sent": 5, "rows": 5})
    assert [check.name for check in reconcile(counts(), half) if not check.ok] == []
    [check] = [check for check in reconcile(counts(raw=9), half) if check.name.startswith("raw records")]
    assert (check.actual, check.expected) == (9, 10)


NONE = {"large_amount": 0, "duplicate_charge": 0, "downstream": 0}


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"raw": 11}, ["raw records (compared with the feed's count)", "events + dead letters of upstream"]),
        ({"events": 7, "event_ids": 7}, ["events + dead letters of upstream", f"events by {COPY}"]),
        ({"events": 7, "event_ids": 7, "copies": {COPY: (7, 7)}}, ["events + dead letters of upstream"]),
        ({"copies": {COPY: (7, 7)}}, [f"events by {COPY}"]),
        ({"rejected": Counter({"invalid-json": 1, "empty": 1})}, ["dead letters: empty", "dead letters: invalid-json"]),
        ({"processed": {"large_amount": (7, 8), "duplicate_charge": (8, 8)}}, ["large_amount: events processed"]),
        ({"seq_gaps": 1}, ["gaps in seq"]),
        ({"notified": ["a1", "a1"]}, ["alerts without a notification"]),
        (
            {"notified": ["a1"], "notification_ids": {"n1"}},
            [
                "notifications (compared with alerts)",
                "alerts without a notification",
                "webhooks received, different ids",
            ],
        ),
        ({"dead_letters": NONE | {"large_amount": 1}}, ["large_amount: dead letters"]),
        ({"dead_letters": NONE | {"downstream": 1}}, ["dead letters of downstream"]),
        ({"webhooks": {"distinct": 2, "repeats": 0, "invalid": 1}}, ["webhooks with a bad signature"]),
    ],
)
def test_every_difference_is_named(changed: dict[str, Any], what: list[str]) -> None:
    assert wrong(**changed) == what


def test_an_alert_twice_in_the_topic_is_seen() -> None:
    twice = counts().alerts["large_amount"] * 2
    assert wrong(alerts=counts().alerts | {"large_amount": twice}) == ["large_amount: different alert ids"]


def test_a_repeat_of_upstream_is_wrong() -> None:
    for changed in ({"events": 9}, {"copies": {COPY: (9, 8)}}, {"rejected_again": 1}):
        assert wrong(**changed) == ["records repeated by upstream"]


@pytest.mark.parametrize("key", NOT_IN_EVERY_EVENT)
def test_a_copy_by_what_an_event_may_lack_need_not_hold_every_event(key: str) -> None:
    assert wrong(copies={key: (5, 5)}) == []
    assert AUTH.column(key) in {field.name for field in AUTH.fields if field.optional}


def test_a_topic_that_is_merged_with_other_streams_holds_each_event_once() -> None:
    assert wrong(merged={"account": (15, 15)}) == []
    assert wrong(merged={"account": (16, 15)}) == ["records repeated by upstream"]


@pytest.mark.parametrize(
    ("logins", "what"),
    [
        (LoginCounts(5, 5, 5, 0), []),
        (LoginCounts(4, 4, 4, 0), ["raw logins (compared with the feed's count)"]),
        (LoginCounts(5, 4, 4, 1), ["logins that became events", "dead letters of logins"]),
        (LoginCounts(5, 6, 5, 0), ["logins repeated by upstream"]),
    ],
)
def test_logins_are_compared_with_their_own_count(logins: LoginCounts, what: list[str]) -> None:
    found = reconcile(counts(logins=logins), summary().model_copy(update={"logins": 5}))
    assert [check.name for check in found if not check.ok] == what


def test_a_missed_case_fails_and_an_alert_on_ordinary_traffic_is_counted() -> None:
    stray = CountedAlert("a1", frozenset({event("t9")}))
    checks = reconcile(counts(alerts=counts().alerts | {"large_amount": [stray]}), summary())
    assert [check.name for check in checks if not check.ok] == ["cases of large_amount found"]
    assert next(check.actual for check in checks if check.name == "alerts of large_amount on ordinary traffic") == 1


def test_cases_of_a_detector_that_did_not_run_are_only_counted() -> None:
    feed = summary()
    feed.cases.append(ReportedCase(kind="card_velocity", txn_ids=("t4",)))
    found = next(check for check in reconcile(counts(), feed) if "card_velocity" in check.name)
    assert (found.actual, found.expected, found.note) == (1, None, "no such detector ran")


def test_a_case_is_found_by_any_of_its_events() -> None:
    burst = frozenset({"e1", "e2", "e3"})
    assert match([burst], [CountedAlert("a", frozenset({"e1", "e2"})), CountedAlert("b", frozenset({"e3"}))]) == (
        [],
        [],
    )
    assert match([burst], []) == ([burst], [])
    stray = CountedAlert("a", frozenset())
    assert match([], [stray]) == ([], [stray])


def test_an_alert_on_a_case_of_another_kind_is_not_on_ordinary_traffic() -> None:
    both = counts().alerts["large_amount"] + [CountedAlert("a3", frozenset({event("t2")}))]
    checks = reconcile(counts(alerts=counts().alerts | {"large_amount": both}), summary())
    found = next(check for check in checks if check.name == "alerts of large_amount on ordinary traffic")
    assert (found.actual, found.note) == (0, "1 more on cases of other kinds")


def test_an_aggregate_may_miss_what_came_later_than_it_declares_and_nothing_else() -> None:
    feed = summary()
    feed.cases = [ReportedCase(kind="large_amount", txn_ids=("t1", "t2"))]
    missed = counts(alerts={"large_amount": []}, processed={"large_amount": (8, 8)}, notified=[])
    tenth = timedelta(minutes=10)

    def found(late: timedelta, lateness: dict[str, timedelta]) -> Comparison:
        with_lateness = replace(missed, late={event("t1"): timedelta(), event("t2"): late})
        return next(x for x in reconcile(with_lateness, feed, lateness) if x.name == "cases of large_amount found")

    excused = found(timedelta(minutes=11), {"large_amount": tenth})
    assert excused.ok
    assert excused.note == "1 more arrived later than the declared lateness"
    assert not found(timedelta(minutes=9), {"large_amount": tenth}).ok
    assert not found(timedelta(minutes=11), {}).ok


def test_every_kind_of_malformed_record_has_its_rejection() -> None:
    assert set(REASONS) == REJECTIONS.keys()


def test_there_are_cases_for_every_detector_of_the_project() -> None:
    assert {*KINDS, TAKEOVER} == {folder.name for folder in detectors_in(CHECKOUT / "detectors")}


def test_the_table_and_the_json_agree() -> None:
    checks = reconcile(counts(seq_gaps=2), summary())
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(table(checks))
    text = console.export_text()
    assert text.count("WRONG") == 1
    assert [row["check"] for row in as_rows(checks) if not row["ok"]] == ["gaps in seq"]
    assert all(row["check"] in text for row in as_rows(checks))

"""Requests of operators over real HTTP: silences, cases, rate-limited alerts, notifications."""

from collections.abc import Callable
from typing import Any

import pytest

from lozenge.contracts.topics import Topics
from lozenge_downstream.api.feedback_records import FeedbackLinks
from lozenge_downstream.model import ReceivedRecord
from lozenge_downstream.routing.matchers import parse
from lozenge_downstream.store.deliveries import Attempt
from tests.downstream.api.conftest import Client, alert_id, feedback
from tests.downstream.conftest import Desk

TOPICS = Topics()
MakeRecord = Callable[..., ReceivedRecord]
TOKEN = "a token"
LINKS = FeedbackLinks("a secret of sixteen", "https://lozenge.example.com/")


def test_a_silence_is_made_shown_and_ended(client: Client, desk: Desk, record: MakeRecord) -> None:
    asked = {"matchers": ["detector = large_amount"], "author": "ann", "reason": "works", "seconds": 600}
    status, made = client.ask("POST", "/silences", asked)
    assert (status, made["ends_at"]) == (200, desk.now + 600)
    id = alert_id(desk, record())
    assert desk.notifications() == []
    _, (shown,) = client.ask("GET", "/silences")
    assert (shown["matchers"], shown["author"], shown["active"]) == (['detector = "large_amount"'], "ann", True)
    _, why = client.ask("GET", f"/alerts/{id}")
    assert why["muted"][0]["reason"] == why["cases"][0]["muted"] == f"silence {made['id']} of ann: works"
    assert client.ask("DELETE", f"/silences/{made['id']}")[0] == 200
    assert client.ask("DELETE", f"/silences/{made['id']}")[0] == 404


def test_why_shows_the_whole_path_of_an_alert(client: Client, desk: Desk, record: MakeRecord) -> None:
    id = alert_id(desk, record(3))
    desk.take(record(3))
    status, why = client.ask("GET", f"/alerts/{id}")
    assert status == 200
    assert [a["outcome"] for a in why["received_alerts"]] == ["accepted", "duplicate"]
    (case,) = why["cases"]
    assert (case["route"], case["muted"]) == ("default", None)
    assert case["notification"]["seq"] == 0
    (delivery,) = case["notification"]["deliveries"]
    assert (delivery["channel"], delivery["state"], delivery["attempts"]) == ("ops", "due", 0)
    assert client.ask("GET", "/alerts/unknown")[0] == 404


def test_open_cases_show_what_was_notified_what_waits_and_why(client: Client, desk: Desk, record: MakeRecord) -> None:
    desk.routing(route={"group_by": ["entity"], "group_interval": "5m", "resolve_timeout": "1h"})
    with desk.store.transaction() as t:
        holds = t.silences.add([parse("severity = critical")], "ann", "works", desk.now + 600)
    start = desk.now
    desk.take(record(0, score=0.5, severity="medium"))
    desk.take(record(1, detector="card_velocity", score=0.8, severity="critical"))
    desk.later(300)
    desk.take(record(2, severity="critical", entity={"type": "card", "id": "card-8"}))
    new, old = client.ask("GET", "/cases")[1]
    assert old == {
        "case_id": old["case_id"],
        "route": "default",
        "group": {"entity": "card:card-7"},
        "severity": "critical",
        "score": 0.9,
        "notified": 1,
        "waiting": 1,
        "opened_at": start,
        "notified_at": start,
        "muted": [str(holds)],
        "next_evaluation_at": start + 600,
        "resolves_at": start + 3600,
        "closed": False,
    }
    assert (new["group"], new["notified"], new["notified_at"], new["muted"]) == (
        {"entity": "card:card-8"},
        0,
        None,
        [str(holds)],
    )
    desk.later(300)
    desk.later(1)
    assert [(c["notified"], c["waiting"], c["muted"]) for c in client.ask("GET", "/cases")[1]] == [
        (1, 0, []),
        (2, 0, []),
    ]


def test_cases_are_found_by_their_alerts_up_to_the_requested_number(
    client: Client, desk: Desk, record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lozenge_downstream.store.queries.case_queries.PAGE", 2)
    desk.routing(route={"group_by": ["entity"], "group_wait": "1m"})
    for number in range(5):
        desk.now += 1
        detector = ("large_amount", "card_velocity")[number % 2]
        desk.take(record(number, detector=detector, entity={"type": "card", "id": f"card-{number}"}))

    def cards(query: str) -> list[str]:
        return [case["group"]["entity"] for case in client.ask("GET", f"/cases?{query}")[1]]

    assert cards("limit=3") == ["card:card-4", "card:card-3", "card:card-2"]
    assert cards("matcher=detector%3Dlarge_amount") == ["card:card-4", "card:card-2", "card:card-0"]
    assert cards("matcher=detector%3Dlarge_amount&matcher=severity%3Dlow") == []
    status, answer = client.ask("GET", "/cases?matcher=severity%3Ddire&limit=0&colour=red")
    assert status == 422
    for part in ("matcher.0: 'severity=dire': 'dire' is none of", "limit: ", "colour: "):
        assert part in answer["error"]
    desk.later(61)
    desk.later(4000)
    assert cards("") == [], "they are over"


def test_a_case_of_one_notified_alert_is_open_until_it_resolves(client: Client, desk: Desk, record: MakeRecord) -> None:
    """Without `group_by` nothing remains to be notified of it, and it is not evaluated again."""
    desk.routing(route={"resolve_timeout": "1h"})
    id = alert_id(desk, record(0))
    for seconds in (0, 3_599):
        desk.now += seconds
        (case,) = client.ask("GET", "/cases")[1]
        assert (case["notified"], case["closed"], case["next_evaluation_at"]) == (1, False, None)
        (seen,) = client.ask("GET", f"/alerts/{id}")[1]["cases"]
        assert (seen["case_id"], seen["closed"]) == (case["case_id"], False)
    desk.now += 1
    assert client.ask("GET", "/cases")[1] == []
    assert client.ask("GET", f"/cases/{case['case_id']}")[1]["closed"]


def test_a_case_shows_its_alerts_when_it_is_over_too(client: Client, desk: Desk, record: MakeRecord) -> None:
    desk.routing(route={"group_by": ["entity"], "group_interval": "5m"})
    desk.take(record(0))
    desk.take(record(1))
    (case,) = client.ask("GET", "/cases")[1]
    shown = client.ask("GET", f"/cases/{case['case_id']}")[1]
    notified, waits = shown.pop("alerts")
    assert shown == case
    assert (notified["detector"], notified["title"], notified["muted"]) == ("large_amount", "Large amount", None)
    assert (notified["notification_id"], waits["notification_id"]) == (desk.notifications()[0]["notification_id"], None)
    desk.later(4000)
    desk.later(8000)
    shown = client.ask("GET", f"/cases/{case['case_id']}")[1]
    assert (shown["closed"], shown["next_evaluation_at"], shown["notified"]) == (True, None, 2)
    assert client.ask("GET", "/cases/unknown")[0] == 404


def test_rate_limited_alerts_are_released_or_dropped(client: Client, desk: Desk, record: MakeRecord) -> None:
    desk.routing(rate_limit={"alerts": 1, "within": "1m"}, route={})
    desk.take(*(record(n) for n in range(4)), *(record(n, detector="card_velocity") for n in range(3)))
    assert client.ask("GET", "/rate-limits")[1] == [
        {"detector": "card_velocity", "rate_limited": 2},
        {"detector": "large_amount", "rate_limited": 3},
    ]
    assert client.ask("POST", "/rate-limits/large_amount/release", {"author": "ann"})[1]["alerts"] == 3
    assert client.ask("POST", "/rate-limits/card_velocity/drop", {"author": "ann"})[1]["alerts"] == 2
    assert client.ask("GET", "/rate-limits")[1] == []
    assert sum(n["detector"] == "large_amount" for n in desk.notifications()) == 4
    assert client.ask("POST", "/rate-limits/card_velocity/burn", {"author": "ann"})[0] == 404


def test_notifications_are_sent_once_more_under_their_ids(client: Client, desk: Desk, record: MakeRecord) -> None:
    desk.take(*(record(n) for n in range(5)))
    with desk.store.transaction() as t:
        t.deliveries.settle([Attempt(delivery, "sent", desk.now) for delivery in t.deliveries.due("ops", 9)])
    assert client.ask("POST", "/replay", {"channel": "ops", "from": 0, "partition": 9})[1]["notifications"] == 0
    assert client.ask("POST", "/replay", {"channel": "ops", "from": 2})[1] == {"channel": "ops", "notifications": 3}
    assert sorted(desk.deliveries()) == [("ops", "due")] * 3 + [("ops", "sent")] * 2
    assert client.ask("POST", "/replay", {"channel": "nobody", "from": 2})[0] == 404


def test_a_replay_sends_notifications_of_other_channels_only_if_all_are_requested(
    client: Client, desk: Desk, record: MakeRecord
) -> None:
    desk.take(*(record(n) for n in range(5)))
    asked = {"channel": "chat", "from": 2}
    assert client.ask("POST", "/replay", asked)[1]["notifications"] == 0
    assert client.ask("POST", "/replay", asked | {"all": True})[1] == {"channel": "chat", "notifications": 3}
    assert sorted(channel for channel, _ in desk.deliveries()) == ["chat"] * 3 + ["ops"] * 5


def test_a_dry_run_answers_and_changes_nothing(client: Client, desk: Desk, record: MakeRecord) -> None:
    rate_limit, hooks = {"alerts": 1, "within": "1m"}, desk.pipeline.routing.channels
    desk.routing(channels=hooks, rate_limit=rate_limit, route={"channels": ["ops"]})
    alert, _ = (received.alert for received in desk.take(record(0), record(1)))
    assert alert is not None
    with desk.store.transaction() as t:
        t.deliveries.disable("ops", "HTTP 410")
        silence = t.silences.add([parse("severity = low")], "ann", "works", desk.now + 600)
    asked = {"matchers": ["severity = high"], "author": "ann", "reason": "works", "seconds": 600}
    said = {"alert_id": alert.id, "author": "ann"}
    changes: list[tuple[str, str, Any, str, Any]] = [
        ("POST", "/silences", asked, "ends_at", desk.now + 600),
        ("DELETE", f"/silences/{silence.id}", None, "id", silence.id),
        ("POST", "/channels/ops/enable", {}, "channel", "ops"),
        ("POST", "/rate-limits/large_amount/release", {"author": "ann"}, "alerts", 1),
        ("POST", "/rate-limits/large_amount/drop", {"author": "ann"}, "alerts", 1),
        ("POST", "/replay", {"channel": "chat", "from": 0, "all": True}, "notifications", len(desk.notifications())),
        ("POST", "/feedback", said | {"verdict": "confirmed"}, "verdict", "confirmed"),
        ("POST", "/feedback", said | {"verdict": "snooze"}, "verdict", "snooze"),
    ]
    seen = ["/silences", "/channels", "/rate-limits", f"/alerts/{alert.id}"]
    before, sent = [client.ask("GET", path) for path in seen], feedback(desk)
    for method, path, body, name, value in changes:
        status, answer = client.ask(method, f"{path}?dry_run", body)
        assert (status, answer[name]) == (200, value), path
    assert ([client.ask("GET", path) for path in seen], feedback(desk)) == (before, sent)
    assert client.ask("DELETE", "/silences/unknown?dry_run")[0] == 404


def test_a_silence_names_a_detector_of_which_no_alert_has_come(client: Client, desk: Desk, record: MakeRecord) -> None:
    desk.take(record())
    asked = {"author": "ann", "reason": "works", "seconds": 600}
    for matchers, unknown in (
        (["detector = large_amount"], []),
        (["detector = large_amont", "severity = high"], ["large_amont"]),
        (['detector =~ "large_.*"'], []),
        (['detector =~ "none.*"'], ["none.*"]),
        (["detector != none"], []),
    ):
        _, made = client.ask("POST", "/silences", asked | {"matchers": [*matchers, "entity = card:7"]})
        assert made["unknown_detectors"] == unknown


def test_a_silence_names_active_ones_with_the_same_matchers(client: Client) -> None:
    asked = {"author": "ann", "reason": "works", "seconds": 600}

    def add(*matchers: str) -> dict[str, Any]:
        made: dict[str, Any] = client.ask("POST", "/silences", asked | {"matchers": matchers})[1]
        return made

    first = add("detector = a", "entity = card:7")
    assert (first["same"], add("detector = a")["same"]) == ([], [])
    assert add("entity=card:7", 'detector = "a"')["same"] == [first["id"]]
    client.ask("DELETE", f"/silences/{first['id']}")
    assert first["id"] not in add("detector = a", "entity = card:7")["same"]


def test_a_silence_names_the_labels_that_no_known_alert_has(client: Client, desk: Desk, record: MakeRecord) -> None:
    desk.take(record(labels={"team": "red"}))
    matchers = ["detectr = large_amount", "team = red", "entity = card:7", "release = r1", "severity >= high"]
    asked = {"author": "ann", "reason": "works", "seconds": 600, "matchers": matchers}
    assert client.ask("POST", "/silences", asked)[1]["unknown_labels"] == ["detectr"]


@pytest.mark.parametrize(
    "matchers",
    [["detector = a", "detector = b"], ["severity >= high", "severity <= low"], ['severity =~ "HIGH"', "detector = a"]],
)
def test_a_silence_that_no_alert_matches_is_refused(client: Client, matchers: list[str]) -> None:
    asked = {"author": "ann", "reason": "works", "seconds": 600, "matchers": matchers}
    status, answer = client.ask("POST", "/silences", asked)
    assert (status, "no alert matches all of them" in answer["error"]) == (422, True), answer


@pytest.mark.parametrize(
    "matchers",
    [
        ['detector =~ ".*"'],
        ['team !~ "fraud.+"'],
        ['team = ""'],
        ["team != fraud"],
        ['severity =~ ".*"'],
        ["severity >= info"],
        ["severity <= critical"],
        ['detector =~ ".*"', 'team = ""', "severity <= critical"],
    ],
    ids=str,
)
def test_a_silence_that_would_mute_every_alert_is_refused(client: Client, matchers: list[str]) -> None:
    asked = {"author": "ann", "reason": "works", "seconds": 600, "matchers": matchers}
    status, answer = client.ask("POST", "/silences", asked)
    assert (status, "would mute every alert" in answer["error"]) == (422, True), answer
    assert client.ask("POST", "/silences?dry_run", asked)[0] == 422
    assert client.ask("GET", "/silences")[1] == []


@pytest.mark.parametrize(
    "matchers",
    [
        ['detector =~ ".+"'],
        ['detector =~ ".*"', "entity = card:card-7"],
        ["severity >= high"],
        ["severity != critical"],
        ['severity =~ "low|high"'],
    ],
    ids=str,
)
def test_a_silence_says_how_many_open_cases_match(
    client: Client, desk: Desk, record: MakeRecord, matchers: list[str]
) -> None:
    desk.routing(route={"group_by": ["entity"]})
    desk.take(record(), record(1, entity={"type": "card", "id": "card-8"}, severity="critical"))
    asked = {"author": "ann", "reason": "works", "seconds": 600, "matchers": matchers}
    status, answer = client.ask("POST", "/silences?dry_run", asked)
    assert (status, answer["matching_cases"]) == (
        200,
        2 if matchers[0] in ('detector =~ ".+"', "severity >= high") else 1,
    )


def test_a_channel_that_is_off_is_turned_on(client: Client, desk: Desk) -> None:
    with desk.store.transaction() as t:
        t.deliveries.disable("ops", "HTTP 410")
    shown = {row["channel"]: row["disabled"] for row in client.ask("GET", "/channels")[1]}
    assert shown == {"chat": None, "ops": "HTTP 410"}
    assert client.ask("POST", "/channels/ops/enable", {})[0] == 200
    assert client.ask("POST", "/channels/ops/enable", {})[0] == 404


def test_failed_messages_of_a_channel_are_counted_and_sent_again(
    client: Client, desk: Desk, record: MakeRecord
) -> None:
    desk.take(*(record(number) for number in range(3)))
    with desk.store.transaction() as t:
        failed, sent, _ = t.deliveries.due("ops", 3)
        t.deliveries.settle([Attempt(failed, "failed", desk.now, "HTTP 400"), Attempt(sent, "sent", desk.now)])
    counted = next(row for row in client.ask("GET", "/channels")[1] if row["channel"] == "ops")
    assert (counted["due"], counted["sent"], counted["failed"]) == (1, 1, 1)
    assert counted["last_error"] == "HTTP 400"
    assert client.ask("POST", "/channels/ops/retry?dry_run", {})[1] == {"channel": "ops", "messages": 1}
    assert client.ask("POST", "/channels/ops/retry", {})[1] == {"channel": "ops", "messages": 1}
    assert client.ask("POST", "/channels/ops/retry", {})[0] == 404
    assert sorted(desk.deliveries()) == [("ops", "due")] * 2 + [("ops", "sent")]

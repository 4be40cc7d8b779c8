"""The notifier over real HTTP: what operators ask and change, and what analysts say."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from lozenge.contracts.avro import Codec
from lozenge.contracts.topics import Topics
from lozenge_downstream.api import api
from lozenge_downstream.api.feedback_records import FeedbackLinks
from lozenge_downstream.api.server import ApiServer
from lozenge_downstream.model import Record
from lozenge_downstream.routing.matchers import parse
from lozenge_downstream.store import StoreUnavailable
from lozenge_downstream.store.deliveries import Attempt
from tests.downstream.conftest import SECRET, Desk

TOPICS = Topics()

MakeRecord = Callable[..., Record]
TOKEN = "a token"
LINKS = FeedbackLinks("a secret of sixteen", "https://lozenge.example.com/")


class Client:
    """Asks the served API, as somebody who has the token."""

    def __init__(self, port: int) -> None:
        self.woken = 0
        self._url = f"http://127.0.0.1:{port}"

    def ask(self, method: str, path: str, body: Any = None, token: str = TOKEN) -> tuple[int, Any]:
        answer = httpx2.request(method, self._url + path, json=body, headers={"authorization": f"Bearer {token}"})
        return answer.status_code, answer.json()

    def send(self, path: str, body: bytes, headers: dict[str, str]) -> int:
        return httpx2.post(self._url + path, content=body, headers=headers).status_code

    def open(self, method: str, path: str, data: Any = None) -> tuple[int, str]:
        answer = httpx2.request(method, self._url + path, data=data)
        return answer.status_code, answer.text


@pytest.fixture
def client(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setenv("HOOK", SECRET)
    hook = {"type": "webhook", "url": "http://h/", "secret": {"env": "HOOK"}}
    desk.routing(channels={"ops": hook, "chat": hook}, route={"channels": ["ops"]})
    with ApiServer(api(desk.store, desk.pipeline, lambda: None, TOKEN, LINKS), "127.0.0.1:0") as serving:
        yield Client(serving.port)


def feedback(desk: Desk) -> list[dict[str, Any]]:
    """What goes to Kafka of feedback, oldest first."""
    with desk.store.reading() as t:
        return [Codec.of("feedback").decode(o.value) for o in t.outbox.pending(10) if o.topic == TOPICS.feedback]


def alert_id(desk: Desk, record: Record) -> str:
    (received,) = desk.take(record)
    assert received.alert is not None
    return received.alert.id


@pytest.mark.parametrize("path", ["/alerts/x", "/cases", "/cases/x", "/silences", "/channels", "/rate-limits"])
def test_who_has_no_token_learns_nothing(client: Client, path: str) -> None:
    assert client.ask("GET", path, token="a guess") == (
        401,
        {"error": "the token is wrong", "hint": "set LOZENGE_NOTIFIER_TOKEN to the notifier's"},
    )
    assert client.open("GET", "/healthz")[0] == 200


def test_a_silence_is_made_shown_and_ended(client: Client, desk: Desk, record: MakeRecord) -> None:
    asked = {"matchers": ["detector = large_amount"], "author": "ann", "reason": "works", "seconds": 600}
    status, made = client.ask("POST", "/silences", asked)
    assert (status, made["ends_at"]) == (200, desk.now + 600)
    id = alert_id(desk, record())
    assert desk.told() == []
    _, (shown,) = client.ask("GET", "/silences")
    assert (shown["matchers"], shown["author"], shown["active"]) == (['detector = "large_amount"'], "ann", True)
    _, why = client.ask("GET", f"/alerts/{id}")
    assert why["muted"][0]["reason"] == why["cases"][0]["muted"] == f"silence {made['id']} of ann: works"
    assert client.ask("DELETE", f"/silences/{made['id']}")[0] == 200
    assert client.ask("DELETE", f"/silences/{made['id']}")[0] == 404


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"matchers": [], "author": "a", "reason": "r", "seconds": 1}, "matchers: "),
        ({"matchers": ["x"], "author": "a", "reason": "r", "seconds": 1}, "'x' is no matcher"),
        ({"matchers": ["a = b"], "author": "a", "reason": "", "seconds": -1}, "reason: "),
        ([], "Input should be"),
        ({"matchers": ['a = "b\0"'], "author": "a", "reason": "r\0", "seconds": 1}, "reason: it contains a NUL"),
        ({"matchers": ['a = "b\0"'], "author": "a", "reason": "r", "seconds": 1}, "matchers.0: it contains a NUL"),
    ],
)
def test_a_wrong_request_gets_every_problem(client: Client, body: Any, says: str) -> None:
    status, answer = client.ask("POST", "/silences", body)
    assert status == 422
    assert says in answer["error"]


def test_what_a_page_in_a_browser_may_send_unasked_is_refused(client: Client, desk: Desk, record: MakeRecord) -> None:
    """A form, or text, goes to any address without a question; JSON does not."""
    said = {"alert_id": alert_id(desk, record()), "verdict": "confirmed", "author": "nobody"}
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "text/plain"}
    assert client.send("/feedback", json.dumps(said).encode(), headers) == 415
    assert client.send("/feedback", json.dumps(said).encode(), headers | {"content-type": "application/json"}) == 200


def test_a_body_without_end_is_not_read_to_it(client: Client) -> None:
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    assert client.send("/feedback", b" " * 1_000_000, headers) == 413
    assert client.send(f"/feedback/{LINKS.make('any').rpartition('/')[2]}", b"a" * 1_000_000, {}) == 413


def test_no_body_and_no_number_is_beyond_it(client: Client) -> None:
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    assert client.send("/feedback", b"[" * 200_000, headers) == 400
    assert client.send("/feedback", b"\xff", headers) == 400
    for much in ({"from": 10**23}, {"from": 0, "partition": 2**31}):
        status, answer = client.ask("POST", "/replay", {"channel": "ops"} | much)
        assert (status, "less than or equal to" in answer["error"]) == (422, True), answer


def test_an_id_is_taken_whatever_it_holds(client: Client) -> None:
    for id in ("a%20b%2F%C3%BC", "%2E%2E%2Fhealthz", ""):
        for what, hint in (("alerts", "was received"), ("cases", "there is no case")):
            status, answer = client.ask("GET", f"/{what}/{id}")
            assert (status, hint in answer["error"]) == (404, True), answer
    for method, path in (("GET", "/alerts/%00"), ("POST", "/rate-limits/%00/drop"), ("POST", "/channels/%00/enable")):
        assert client.ask(method, path, {"author": "ann"} if method == "POST" else None) == (
            422,
            {"error": "the path contains a NUL", "hint": ""},
        )


def test_what_it_does_not_know_or_fails_at_is_answered_as_everything_else_is(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.ask("GET", "/elsewhere") == (404, {"error": "GET /elsewhere: Not Found", "hint": ""})
    assert client.ask("POST", "/cases", {})[0] == 405

    def broken(*_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr("lozenge_downstream.store.silences.Silences.all", broken)
    status, answer = client.ask("GET", "/silences")
    assert (status, answer["error"]) == (500, "the notifier failed: KeyError")


def test_why_tells_the_whole_way_of_an_alert(client: Client, desk: Desk, record: MakeRecord) -> None:
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


def test_open_cases_say_what_was_told_what_waits_and_why(client: Client, desk: Desk, record: MakeRecord) -> None:
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


def test_cases_are_found_by_their_alerts_and_are_no_more_than_asked_for(
    client: Client, desk: Desk, record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lozenge_downstream.store.case_queries.PAGE", 2)
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


def test_a_case_shows_its_alerts_when_it_is_over_too(client: Client, desk: Desk, record: MakeRecord) -> None:
    desk.routing(route={"group_by": ["entity"], "group_interval": "5m"})
    desk.take(record(0))
    desk.take(record(1))
    (case,) = client.ask("GET", "/cases")[1]
    shown = client.ask("GET", f"/cases/{case['case_id']}")[1]
    told, waits = shown.pop("alerts")
    assert shown == case
    assert (told["detector"], told["title"], told["muted"]) == ("large_amount", "Large amount", None)
    assert (told["notification_id"], waits["notification_id"]) == (desk.told()[0]["notification_id"], None)
    desk.later(4000)
    desk.later(8000)
    shown = client.ask("GET", f"/cases/{case['case_id']}")[1]
    assert (shown["closed"], shown["next_evaluation_at"], shown["notified"]) == (True, None, 2)
    assert client.ask("GET", "/cases/unknown")[0] == 404


def test_what_is_parked_is_released_or_dropped(client: Client, desk: Desk, record: MakeRecord) -> None:
    desk.routing(rate_limit={"alerts": 1, "within": "1m"}, route={})
    desk.take(*(record(n) for n in range(4)), *(record(n, detector="card_velocity") for n in range(3)))
    assert client.ask("GET", "/rate-limits")[1] == [
        {"detector": "card_velocity", "rate_limited": 2},
        {"detector": "large_amount", "rate_limited": 3},
    ]
    assert client.ask("POST", "/rate-limits/large_amount/release", {"author": "ann"})[1]["alerts"] == 3
    assert client.ask("POST", "/rate-limits/card_velocity/drop", {"author": "ann"})[1]["alerts"] == 2
    assert client.ask("GET", "/rate-limits")[1] == []
    assert sum(told["detector"] == "large_amount" for told in desk.told()) == 4
    assert client.ask("POST", "/rate-limits/card_velocity/burn", {"author": "ann"})[0] == 404


def test_notifications_are_sent_once_more_under_their_ids(client: Client, desk: Desk, record: MakeRecord) -> None:
    desk.take(*(record(n) for n in range(5)))
    with desk.store.transaction() as t:
        t.deliveries.settle([Attempt(delivery, "sent", desk.now) for delivery in t.deliveries.due("ops", 9)])
    assert client.ask("POST", "/replay", {"channel": "ops", "from": 0, "partition": 9})[1]["notifications"] == 0
    assert client.ask("POST", "/replay", {"channel": "ops", "from": 2})[1] == {"channel": "ops", "notifications": 3}
    assert sorted(desk.deliveries()) == [("ops", "due")] * 3 + [("ops", "sent")] * 2
    assert client.ask("POST", "/replay", {"channel": "nobody", "from": 2})[0] == 404


def test_what_was_never_meant_for_a_channel_goes_there_only_if_all_is_asked_for(
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
        ("POST", "/replay", {"channel": "chat", "from": 0, "all": True}, "notifications", len(desk.told())),
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
        (['detector =~ "none.*"'], []),
    ):
        _, made = client.ask("POST", "/silences", asked | {"matchers": matchers})
        assert made["unknown_detectors"] == unknown


def test_a_channel_that_is_off_is_turned_on(client: Client, desk: Desk) -> None:
    with desk.store.transaction() as t:
        t.deliveries.disable("ops", "HTTP 410")
    shown = {row["channel"]: row["disabled"] for row in client.ask("GET", "/channels")[1]}
    assert shown == {"chat": None, "ops": "HTTP 410"}
    assert client.ask("POST", "/channels/ops/enable", {})[0] == 200
    assert client.ask("POST", "/channels/ops/enable", {})[0] == 404


def test_a_verdict_goes_to_kafka_and_the_last_word_counts(client: Client, desk: Desk, record: MakeRecord) -> None:
    id = alert_id(desk, record())
    for verdict in ("confirmed", "false_alarm"):
        said = {"alert_id": id, "verdict": verdict, "author": "ann", "note": "called them"}
        assert client.ask("POST", "/feedback", said)[0] == 200
    with desk.store.reading() as t:
        assert t.feedback.counts() == {("large_amount", "r1", "false_alarm"): 1}
    sent = feedback(desk)
    assert [(f["verdict"], f["snoozed_until"]) for f in sent] == [("confirmed", None), ("false_alarm", None)]
    assert (sent[0]["alert_id"], sent[0]["release"], sent[0]["entity"]) == (id, "r1", "card:card-7")


def test_a_snooze_silences_the_card_for_this_detector(client: Client, desk: Desk, record: MakeRecord) -> None:
    id = alert_id(desk, record(0))
    said = {"alert_id": id, "verdict": "snooze", "author": "ann"}
    assert "silence" in client.ask("POST", "/feedback", said)[1]
    desk.take(record(1), record(2, entity={"type": "card", "id": "card-8"}), record(3, detector="card_velocity"))
    assert len(desk.told()) == 3, "one before, another card's, and another detector's"


def test_a_snooze_goes_to_kafka_and_is_no_judgement(client: Client, desk: Desk, record: MakeRecord) -> None:
    id = alert_id(desk, record())
    for verdict in ("confirmed", "snooze"):
        said = {"alert_id": id, "verdict": verdict, "author": "ann", "seconds": 3600}
        assert client.ask("POST", "/feedback", said)[0] == 200
    _, snoozed = feedback(desk)
    assert (snoozed["verdict"], snoozed["snoozed_until"].timestamp()) == ("snooze", desk.now + 3600)
    with desk.store.reading() as t:
        assert t.feedback.precision() == {("large_amount", "r1"): 1.0}
    assert [v["verdict"] for v in client.ask("GET", f"/alerts/{id}")[1]["feedback"]] == ["confirmed", "snooze"]


def test_a_snooze_that_cannot_go_to_kafka_is_no_silence_either(
    client: Client, desk: Desk, record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StoreUnavailable("writing the store: it is full")

    said = {"alert_id": alert_id(desk, record()), "verdict": "snooze", "author": "ann"}
    monkeypatch.setattr("lozenge_downstream.store.positions.Outbox.send", full)
    assert client.ask("POST", "/feedback", said)[0] == 503
    assert client.ask("GET", "/silences")[1] == []


def test_a_link_shows_a_page_and_says_nothing_by_itself(client: Client, desk: Desk, record: MakeRecord) -> None:
    id = alert_id(desk, record(title="<script>"))
    path = LINKS.make(id).removeprefix("https://lozenge.example.com")
    status, page = client.open("GET", path)
    assert status == 200
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    with desk.store.reading() as t:
        assert t.feedback.counts() == {}
    assert "recorded: false alarm" in client.open("POST", path, {"verdict": "false_alarm", "author": "bob"})[1]
    with desk.store.reading() as t:
        assert t.feedback.counts() == {("large_amount", "r1", "false_alarm"): 1}
    assert "recorded: snooze" in client.open("POST", path, {"verdict": "snooze", "author": "bob"})[1]
    assert feedback(desk)[-1]["snoozed_until"].timestamp() == desk.now + 7 * 86_400
    assert client.open("POST", path, {"verdict": "maybe", "author": "bob"})[0] == 422
    longer = {"verdict": "snooze", "author": "bob", "seconds": "31622400"}
    assert client.open("POST", path, longer)[0] == 422, "the page says for how long"
    assert client.open("GET", path[:-2])[0] == 403


@pytest.mark.parametrize("bind", ["no..name:0", "192.0.2.1:0"])
def test_an_address_at_which_nobody_can_listen_gets_a_sentence(desk: Desk, bind: str) -> None:
    app = api(desk.store, desk.pipeline, lambda: None, TOKEN, LINKS)
    with capture_logs() as said, ApiServer(app, bind) as serving:
        assert serving.port == 0
    assert [line["event"].startswith(f"the API cannot listen at {bind}: ") for line in said] == [True]

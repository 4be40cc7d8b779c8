"""Who may ask, what a request may hold, and the form of every answer."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from starlette.requests import Request

from lozenge.contracts.topics import Topics
from lozenge_downstream.api.feedback_records import FeedbackLinks
from lozenge_downstream.api.request_handling import RequestRefused, body_of
from lozenge_downstream.model import ReceivedRecord
from tests.downstream.api.conftest import Client, alert_id
from tests.downstream.conftest import Desk

TOPICS = Topics()
MakeRecord = Callable[..., ReceivedRecord]
TOKEN = "a token"
LINKS = FeedbackLinks("a secret of sixteen", "https://lozenge.example.com/")


@pytest.mark.parametrize("path", ["/alerts/x", "/cases", "/cases/x", "/silences", "/channels", "/rate-limits"])
def test_a_request_without_the_token_is_refused(client: Client, path: str) -> None:
    assert client.ask("GET", path, token="a guess") == (
        401,
        {"error": "the token is wrong", "hint": "set LOZENGE_NOTIFIER_TOKEN to the notifier's"},
    )
    assert client.open("GET", "/healthz")[0] == 200


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"matchers": [], "author": "a", "reason": "r", "seconds": 1}, "matchers: "),
        ({"matchers": ["x"], "author": "a", "reason": "r", "seconds": 1}, "'x' is no matcher"),
        ({"matchers": ["a = b"], "author": "a", "reason": "", "seconds": -1}, "reason: "),
        ([], "it must be"),
        ({"matchers": ['a = "b\0"'], "author": "a", "reason": "r\0", "seconds": 1}, "reason: it contains a NUL"),
        ({"matchers": ['a = "b\0"'], "author": "a", "reason": "r", "seconds": 1}, "matchers.0: it contains a NUL"),
    ],
)
def test_a_wrong_request_gets_every_problem(client: Client, body: Any, says: str) -> None:
    status, answer = client.ask("POST", "/silences", body)
    assert status == 422
    assert says in answer["error"]


def test_a_cross_site_request_of_a_browser_is_refused(client: Client, desk: Desk, record: MakeRecord) -> None:
    """A form, or text, goes to any address without a question; JSON does not."""
    said = {"alert_id": alert_id(desk, record()), "verdict": "confirmed", "author": "nobody"}
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "text/plain"}
    assert client.send("/feedback", json.dumps(said).encode(), headers) == 415
    assert client.send("/feedback", json.dumps(said).encode(), headers | {"content-type": "application/json"}) == 200


def test_an_endless_body_is_not_read_to_its_end(client: Client) -> None:
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    assert client.send("/feedback", b" " * 1_000_000, headers) == 413
    assert client.send(f"/feedback/{LINKS.make('any').rpartition('/')[2]}", b"a" * 1_000_000, {}) == 413


def test_nested_bodies_and_numbers_out_of_range_are_refused(client: Client) -> None:
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    assert client.send("/feedback", b"[" * 200_000, headers) == 400
    assert client.send("/feedback", b"\xff", headers) == 400
    for much in ({"from": 10**23}, {"from": 0, "partition": 2**31}):
        status, answer = client.ask("POST", "/replay", {"channel": "ops"} | much)
        assert (status, "it must be at most" in answer["error"]) == (422, True), answer


def test_an_id_may_hold_any_text(client: Client) -> None:
    for id in ("a%20b%2F%C3%BC", "%2E%2E%2Fhealthz", ""):
        for what, hint in (("alerts", "was received"), ("cases", "there is no case")):
            status, answer = client.ask("GET", f"/{what}/{id}")
            assert (status, hint in answer["error"]) == (404, True), answer
    for method, path in (("GET", "/alerts/%00"), ("POST", "/rate-limits/%00/drop"), ("POST", "/channels/%00/enable")):
        assert client.ask(method, path, {"author": "ann"} if method == "POST" else None) == (
            422,
            {"error": "the path contains a NUL", "hint": ""},
        )


def test_unknown_paths_and_failures_are_answered_in_the_same_form(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.ask("GET", "/elsewhere") == (404, {"error": "GET /elsewhere: Not Found", "hint": ""})
    assert client.ask("POST", "/cases", {})[0] == 405

    def broken(*_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr("lozenge_downstream.store.silences.Silences.all", broken)
    status, answer = client.ask("GET", "/silences")
    assert (status, answer["error"]) == (500, "the notifier failed: KeyError")


SILENCE = {"matchers": ["a = b"], "author": "a", "reason": "r", "seconds": 1}


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"seconds": True}, 422, "seconds: it is no number"),
        ({"seconds": float("nan")}, 400, "the body has NaN, which is no JSON number"),
        ({"seconds": float("-inf")}, 400, "the body has -Infinity"),
        ({"seconds": 1e308}, 422, "seconds: "),
        ({"seconds": None}, 422, "seconds: "),
        ({"author": " "}, 422, "author: it shows nothing"),
        ({"author": "\u200b"}, 422, "author: it shows nothing"),
        ({"author": "a" * 501}, 422, "author: "),
        ({"author": "\ud800"}, 400, "the body is not JSON"),
        ({"matchers": ["a = \ud800"]}, 400, "the body is not JSON"),
        ({"matchers": "a = b"}, 422, "matchers: "),
        ({"matchers": {"a": "b"}}, 422, "matchers: "),
        ({"matchers": [["a = b"]]}, 422, "matchers.0: "),
        ({"matchers": [None]}, 422, "matchers.0: "),
        ({"reason": {"a": 1}}, 422, "reason: "),
        ({"reasons": "r"}, 422, "reasons: "),
    ],
    ids=ascii,
)
def test_a_value_of_another_kind_or_without_meaning_is_refused(
    client: Client, body: dict[str, Any], status: int, says: str
) -> None:
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    answer = client.post("/silences", json.dumps(SILENCE | body).encode(), headers)
    assert (answer.status_code, says in answer.json()["error"]) == (status, True), answer.text
    assert client.ask("GET", "/silences")[1] == []


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"channel": "ops", "from": 1, "from": 0}', "a name twice: 'from'"),
        (b'{"channel": "ops", "from": 1e400}', ""),
        (b"1" * 5_000, "the body is not JSON"),
        (b"", "the body is not JSON"),
        (b"null", ""),
        (b'"' + b"x" * 100, "the body is not JSON"),
        (b'{"a":' * 2_000, "the body is not JSON"),
    ],
    ids=lambda value: ascii(value[:30]),
)
def test_a_body_that_is_no_one_object_is_refused(client: Client, body: bytes, says: str) -> None:
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    answer = client.post("/replay", body, headers)
    assert (answer.status_code in (400, 422), says in answer.json()["error"]) == (True, True), answer.text


def test_numbers_of_a_replay_are_no_truth_values_and_no_parameter_comes_twice(client: Client) -> None:
    for wrong in ({"from": True}, {"from": 0, "partition": False}, {"from": 1.5}, {"from": None}):
        assert client.ask("POST", "/replay", {"channel": "ops"} | wrong)[0] == 422
    assert client.ask("GET", "/cases?limit=1&limit=2")[0] == 422


def test_a_body_with_a_byte_order_mark_is_read(client: Client) -> None:
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json; charset=utf-8"}
    assert client.send("/silences", b"\xef\xbb\xbf" + json.dumps(SILENCE).encode(), headers) == 200


def test_a_client_that_leaves_before_the_end_of_its_body_is_refused_and_no_error() -> None:
    messages = iter([{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}])

    async def receive() -> Any:
        return next(messages)

    with pytest.raises(RequestRefused, match="before the body"):
        asyncio.run(body_of(Request({"type": "http", "method": "POST", "headers": []}, receive)))


def test_no_answer_and_no_page_shows_a_card_number(client: Client, desk: Desk, record: MakeRecord) -> None:
    card, hidden = "4000 0000 0000 0002", "4000 00** **** 0002"
    id = alert_id(desk, record(title=f"refund {card}", reason=f"paid with {card}", labels={"note": card}))
    given = {"alert_id": id, "verdict": "confirmed", "author": "ann", "note": f"it is {card}"}
    assert client.ask("POST", "/feedback", given)[0] == 200
    answers = [client.ask("GET", path) for path in (f"/alerts/{id}", "/cases", f"/alerts/{card}", f"/{card}")]
    pages = [client.open("GET", LINKS.make(id).removeprefix("https://lozenge.example.com"))[1]]
    found = [json.dumps(answer) for _, answer in answers] + pages + [json.dumps(desk.notifications(), default=str)]
    assert [text for text in found if card in text or "400000000000" in text] == []
    assert sum(hidden in text for text in found) >= 4

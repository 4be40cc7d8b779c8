"""Who may ask, what a request may hold, and the form of every answer."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from lozenge.contracts.topics import Topics
from lozenge_downstream.api.feedback_records import FeedbackLinks
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
        ([], "Input should be"),
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
        assert (status, "less than or equal to" in answer["error"]) == (422, True), answer


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

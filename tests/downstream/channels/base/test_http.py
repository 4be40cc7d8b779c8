"""What the status and the headers of an HTTP answer mean for a delivery."""

import re
import socket
import threading

import pytest
from pydantic import ValidationError

from lozenge_downstream.channels.base.channel import Message, Refused, Retry, Sent
from lozenge_downstream.channels.base.http import result_of
from lozenge_downstream.routing.config import Routing
from tests.downstream.channels.conftest import receiving, send
from tests.downstream.conftest import NOON
from tests.http_server import QuietHandler, serving


@pytest.mark.parametrize("status", [200, 202, 204])
def test_a_2xx_answer_means_sent(status: int) -> None:
    assert result_of(status, None, NOON) == Sent()


@pytest.mark.parametrize("status", [301, 307, 400, 401, 404, 429, 500, 503])
def test_any_other_answer_is_retried(status: int) -> None:
    assert result_of(status, None, NOON) == Retry(f"HTTP {status}")


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120.0),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("99999999", 86_400.0),
        ("soon", None),
        ("-5", None),
        ("Sun, 01 Mar 2026 12:00:30", None),
        ("Sun, 01 Mar 2026 12:00:30 +99999999999999", None),
        ("9" * 400, 86_400.0),
        ("\u00b2", None),
        ("", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(header: str, seconds: float | None) -> None:
    assert result_of(429, header, NOON) == Retry("HTTP 429", seconds)


def test_a_message_that_a_receiver_refuses_for_a_time_is_retried() -> None:
    assert result_of(413, None, NOON, {400, 413}, "too large") == Refused("HTTP 413: too large")
    assert result_of(413, "60", NOON, {400, 413}, "busy") == Retry("HTTP 413: busy", 60.0)


PAGES = (
    b"<!DOCTYPE html>\n<html><head><title>Sign in</title>",
    b"\n <html lang='en'><body>Service unavailable</body></html>",
    b"\xef\xbb\xbf<!doctype HTML><title>Login",
    b'<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN">',
    b"<!-- served by proxy 7 --><HTML>",
)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_that_comes_with_status_200_is_not_taken_for_success(
    page: bytes, message: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    monkeypatch.setenv("KEY", "k" * 32)
    with receiving(200, answer=page) as (url, got):
        monkeypatch.setenv("SLACK", f"{url}/services/T/B/x")
        webhook = {"type": "webhook", "url": url, "secret": {"env": "SECRET"}}
        pager = {"type": "pagerduty", "url": url, "key": {"env": "KEY"}}
        for channel in (
            webhook,
            pager,
            {"type": "alertmanager", "url": url},
            {"type": "slack", "url": {"env": "SLACK"}},
        ):
            error = "HTTP 200: the answer is a page of HTML, as of a login or an error"
            assert send(message, networks=["127.0.0.0/8"], **channel) == Retry(error), channel["type"]
            assert send(message, networks=["127.0.0.0/8"], accepts_html=True, **channel) == Sent(), channel["type"]
    assert len(got) == 8


@pytest.mark.parametrize("answer", [b"", b"ok", b"<ok/>", b'{"page": "<html>"}', b"\xff\xfe", b"a <html> of its own"])
def test_an_answer_that_is_no_page_is_success(answer: bytes, message: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    with receiving(200, answer=answer) as (url, _):
        webhook = {"type": "webhook", "url": url, "secret": {"env": "SECRET"}, "networks": ["127.0.0.0/8"]}
        assert send(message, **webhook) == Sent()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed_and_the_error_says_where_the_receiver_is(
    message: Message, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving() as (elsewhere, got), receiving(status, f"{elsewhere}/x") as (url, _):
        hook = {"type": "alertmanager", "url": url, "networks": ["127.0.0.0/8"]}
        error = f"HTTP {status}: redirects are not followed; the receiver is at {elsewhere}/x"
        assert send(message, **hook) == Retry(error)
    with receiving(status, "/services/T/B/x/") as (url, _):
        monkeypatch.setenv("SLACK", f"{url}/services/T/B/x")
        slack = {"type": "slack", "url": {"env": "SLACK"}, "networks": ["127.0.0.0/8"]}
        assert send(message, **slack) == Retry(f"HTTP {status}: redirects are not followed; the receiver is at /***/")
    assert got == []


@pytest.mark.parametrize(("scheme", "says"), [("http", "Server disconnected|connection broke|reset"), ("https", "EOF")])
def test_a_receiver_that_hangs_up_leaves_an_error_that_says_so(message: Message, scheme: str, says: str) -> None:
    def hang_up(server: socket.socket) -> None:
        connection, _ = server.accept()
        connection.recv(65_536)
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=hang_up, args=[server])
        thread.start()
        url = f"{scheme}://127.0.0.1:{server.getsockname()[1]}/"
        result = send(message, type="alertmanager", url=url, networks=["127.0.0.0/8"])
        thread.join(20)
    assert isinstance(result, Retry)
    assert re.search(says, result.error), result


@pytest.mark.parametrize("url", ["https://ann:secret@h.example.com/x", "https://token@h.example.com/x"])
@pytest.mark.parametrize("type", ["webhook", "pagerduty", "alertmanager", "slack"])
def test_a_login_in_a_url_is_refused_since_it_would_not_be_sent(
    url: str, type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("URL", url)
    monkeypatch.setenv("SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    more = {"webhook": {"secret": {"env": "SECRET"}}, "pagerduty": {"key": {"env": "SECRET"}}}.get(type, {})
    given = {"type": type, "url": {"env": "URL"} if type == "slack" else url, **more}
    with pytest.raises(ValidationError, match="a user name or a password") as caught:
        Routing.model_validate({"channels": {"c": given}})
    assert "secret@" not in caught.value.errors()[0]["msg"]


def test_an_error_has_the_beginning_of_the_answer_and_no_secret_that_it_repeats(
    message: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[bytes] = []

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(400)
            self.send_header("content-length", str(len(answers[-1])))
            self.end_headers()
            self.wfile.write(answers[-1])

    monkeypatch.setenv("KEY", "k" * 32)
    with serving(Handler) as url:
        pager = {"type": "pagerduty", "key": {"env": "KEY"}, "url": url, "networks": ["127.0.0.0/8"]}
        monkeypatch.setenv("SLACK", f"{url}/services/T/B/x")
        slack = {"type": "slack", "url": {"env": "SLACK"}, "networks": ["127.0.0.0/8"]}
        for channel, answer, error in (
            (pager, b'{"errors":\n["the key %s is invalid"]}' % (b"k" * 32), '{"errors": ["the key *** is invalid"]}'),
            (slack, b"no such hook: /services/T/B/x", "no such hook: /***"),
            (slack, b"<html><body>Bad request</body></html>", ""),
            (slack, b"x" * 100_000, "x" * 197 + "..."),
            (slack, b"\xff\x00", "\ufffd\x00"),
        ):
            answers.append(answer)
            assert send(message, **channel) == Refused(f"HTTP 400: {error}" if error else "HTTP 400")

"""Apprise: what arrives at a service on loopback."""

import email
import email.policy
from collections.abc import Callable
from email.message import EmailMessage

import pytest

from lozenge_downstream.channels.base.channel import Message, Retry, Sent
from lozenge_downstream.model import ReceivedRecord
from tests.downstream.channels.conftest import mail_server, receiving, send

MakeRecord = Callable[..., ReceivedRecord]
LINK = "https://lozenge.example.com/feedback/a.b-c?d=1&e=2"


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # which apprise still imports
def test_apprise_reaches_a_service_that_has_no_channel_of_its_own(
    message: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving() as (url, got):
        monkeypatch.setenv("APPRISE", url.replace("http://", "json://"))
        assert send(message, type="apprise", url={"env": "APPRISE"}) == Sent()
    ((_, body),) = got
    assert body["title"] == "[high] <b>Large\namount & more</b> (opened)"


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
@pytest.mark.parametrize(("wanted", "followed"), [("", False), ("?redirect=yes", True)])
def test_apprise_follows_a_redirect_only_where_its_url_says_so(
    message: Message, wanted: str, followed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving() as (elsewhere, got), receiving(307, elsewhere) as (url, _):
        monkeypatch.setenv("APPRISE", url.replace("http://", "json://") + wanted)
        result = send(message, type="apprise", url={"env": "APPRISE"})
    assert bool(got) is followed
    assert result == (Sent() if followed else Retry("the service refused it"))


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
def test_apprise_gets_the_link_to_the_feedback_page(
    message_with_links: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving() as (url, got):
        monkeypatch.setenv("APPRISE", url.replace("http://", "json://"))
        assert send(message_with_links, type="apprise", url={"env": "APPRISE"}) == Sent()
    ((_, body),) = got
    assert body["message"].endswith(f"right or wrong?\n{LINK}")


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
@pytest.mark.parametrize(("option", "longest"), [("", 250), ("?overflow=upstream", 1_000)])
def test_apprise_cuts_what_a_service_would_refuse_unless_its_url_says_otherwise(
    message: Message, option: str, longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = Message(message.id, "", {**message.fields, "title": "t" * 600})
    with receiving() as (url, got):
        monkeypatch.setenv("APPRISE", url.replace("http://", "json://") + option)
        assert send(long, type="apprise", url={"env": "APPRISE"}) == Sent()
    ((_, body),) = got
    assert len(body["title"]) == min(longest, len(f"[high] {'t' * 600} (opened)"))


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
def test_apprise_gives_a_service_that_takes_html_no_markup_out_of_an_alert(
    message: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mail_server() as (port, mails):
        monkeypatch.setenv("APPRISE", f"mailto://127.0.0.1:{port}/?from=l@example.com&to=ops@example.com&format=html")
        awkward = {**message.fields, "text": "merchant <script>1</script> & Söhne\nline 2"}
        assert send(Message(message.id, "", awkward), type="apprise", url={"env": "APPRISE"}) == Sent()
    (mail,) = (email.message_from_bytes(each, policy=email.policy.default) for each in mails)
    assert isinstance(mail, EmailMessage)
    shown = mail.get_body(("html",))
    assert shown is not None
    html = shown.get_content().replace("&nbsp;", " ")
    assert "merchant &lt;script&gt;1&lt;/script&gt; &amp; Söhne<br/>line 2" in html

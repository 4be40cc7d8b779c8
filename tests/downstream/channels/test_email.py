"""Mail: what arrives at an SMTP server on loopback, and what its answers mean."""

import email
import email.policy
from collections.abc import Callable
from email.message import EmailMessage
from typing import Any

import pytest
from pydantic import ValidationError

from lozenge_downstream.channels.base.channel import Message, Refused, Result, Retry, Sent
from lozenge_downstream.channels.email import compose
from lozenge_downstream.model import ReceivedRecord
from lozenge_downstream.routing.config import Routing
from tests.downstream.channels.conftest import mail_server, send

MakeRecord = Callable[..., ReceivedRecord]
LINK = "https://lozenge.example.com/feedback/a.b-c?d=1&e=2"
TITLE = "<b>Large amount & more</b>"


ADDRESSES = {"from": "lozenge@example.com", "to": ["ops@example.com"]}


@pytest.mark.parametrize(
    ("answer", "result"),
    [("250 OK", Sent()), ("451 later", Retry("SMTP 451: later")), ("554 never", Refused("SMTP 554: never"))],
)
def test_the_mails_of_a_case_are_one_thread(message: Message, answer: str, result: Result) -> None:
    with mail_server(answer) as (port, mails):
        assert send(message, type="email", host="127.0.0.1", port=port, security="none", **ADDRESSES) == result
    mail = email.message_from_bytes(mails[0], policy=email.policy.default)
    assert isinstance(mail, EmailMessage)
    assert mail["Subject"] == "[high] <b>Large amount & more</b> (opened)"
    assert mail["Message-ID"] == f"<{message.id}@lozenge.invalid>"
    assert str(message.fields["case_id"]) in mail["References"]
    assert "300.00 EUR is above 220.00" in mail.get_content()


def test_a_mail_holds_a_link_to_the_feedback_page_for_each_alert(message_with_links: Message) -> None:
    text = compose(message_with_links, "lozenge@example.com", ("ops@example.com",)).get_content()
    assert f"{TITLE}, right or wrong?\n{LINK}\n" in text
    assert text.count(LINK) == 1, "nor is a link shown that is too long to be opened"


def test_a_mail_server_that_is_away_is_tried_again(message: Message) -> None:
    result = send(message, type="email", host="127.0.0.1", port=1, security="none", **ADDRESSES)
    assert result == Retry("ConnectionRefusedError: [Errno 111] Connection refused")


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ("530 5.7.1 Client was not authenticated", Retry),
        ("538 Encryption required", Retry),
        ("550 5.7.1 relaying denied", Refused),
        ("451 greylisted", Retry),
    ],
)
def test_mails_wait_until_a_wrong_login_is_fixed(
    message: Message, answer: str, result: type[Retry] | type[Refused]
) -> None:
    with mail_server(recipient=answer) as (port, mails):
        sent = send(message, type="email", host="127.0.0.1", port=port, security="none", **ADDRESSES)
    said = f"SMTP {answer[:3]}: {answer[4:]}"
    assert sent == result(f"every recipient was refused: {said}")
    assert mails == []


def test_a_login_that_cannot_be_sent_is_named(message: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "schlüssel")
    with mail_server(login=True) as (port, _):
        login = {"user": "ann", "password": {"env": "PASSWORD"}}
        sent = send(message, type="email", host="127.0.0.1", port=port, security="none", **login, **ADDRESSES)
    assert sent == Retry("the user or the password has a character beyond ASCII, which this client cannot send")


def mail_channel(**given: object) -> Any:
    return Routing.model_validate({"channels": {"c": {"type": "email", "host": "h", **ADDRESSES, **given}}}).channels[
        "c"
    ]


@pytest.mark.parametrize(
    "address",
    [
        "Lozenge <l@x.org>",
        "<l@x.org>",
        "a,b@c.org",
        "a@b;",
        "a@b,",
        'a"b@c.org',
        "a@[1.2.3.4",
        "a@b..c",
        "a@b@c",
        "a",
        "",
    ],
)
@pytest.mark.parametrize("field", ["from", "to"])
def test_an_address_that_no_mail_can_have_is_refused_when_the_file_is_read(address: str, field: str) -> None:
    with pytest.raises(ValidationError, match="is no address such as"):
        mail_channel(**{field: address if field == "from" else ["ops@example.com", address]})


@pytest.mark.parametrize("address", ["fraud+ops@example.co.uk", "root@localhost", "jörg@bücher.example"])
def test_a_usual_address_is_taken(address: str, message: Message) -> None:
    mail_channel(**{"from": address, "to": [address]})
    assert compose(message, address, (address,))["To"].addresses[0].addr_spec == address


@pytest.mark.parametrize("host", ["smtp.example.com:587", "[::1]", "h:"])
def test_a_host_with_a_port_is_refused(host: str) -> None:
    with pytest.raises(ValidationError, match="write the port as port = 587"):
        mail_channel(host=host)
    mail_channel(host="::1")


def test_port_465_is_encrypted_from_its_start_unless_the_file_says_otherwise() -> None:
    assert mail_channel(port=465).security == "tls"
    assert mail_channel(port=465, security="starttls").security == "starttls"
    assert mail_channel(port=25).security == "starttls"


@pytest.mark.parametrize("half", [{"user": "ann"}, {"password": {"env": "PASSWORD"}}])
def test_half_a_login_is_refused(half: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "p")
    with pytest.raises(ValidationError, match="both user and password"):
        mail_channel(**half)

"""Mail: what arrives at an SMTP server on loopback, and what its answers mean."""

import email
import email.policy
from collections.abc import Callable
from email.message import EmailMessage
from typing import Any

import pytest
from aiosmtpd.controller import Controller

from lozenge_deploy.local.ports import free_port
from lozenge_downstream.channels.base.channel import Message, Refused, Result, Retry, Sent
from lozenge_downstream.channels.email import compose
from lozenge_downstream.model import ReceivedRecord
from tests.downstream.channels.conftest import send

MakeRecord = Callable[..., ReceivedRecord]
LINK = "https://lozenge.example.com/feedback/a.b-c?d=1&e=2"
TITLE = "<b>Large amount & more</b>"


class Mailbox:
    """Keeps what it is sent, or refuses it with `answer`."""

    def __init__(self, answer: str = "250 OK") -> None:
        self.answer = answer
        self.mails: list[bytes] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        self.mails.append(envelope.content)
        return self.answer


@pytest.mark.parametrize(
    ("answer", "result"),
    [("250 OK", Sent()), ("451 later", Retry("SMTP 451: later")), ("554 never", Refused("SMTP 554: never"))],
)
def test_the_mails_of_a_case_are_one_thread(message: Message, answer: str, result: Result) -> None:
    mailbox = Mailbox(answer)
    port = free_port(0)
    controller = Controller(mailbox, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        addresses = {"from": "lozenge@example.com", "to": ["ops@example.com"]}
        assert send(message, type="email", host="127.0.0.1", port=port, security="none", **addresses) == result
    finally:
        controller.stop()
    mail = email.message_from_bytes(mailbox.mails[0], policy=email.policy.default)
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
    addresses = {"from": "lozenge@example.com", "to": ["ops@example.com"]}
    result = send(message, type="email", host="127.0.0.1", port=1, security="none", **addresses)
    assert result == Retry("ConnectionRefusedError: [Errno 111] Connection refused")

"""E-mail by SMTP. The `Message-ID` is the notification's id; the mails of a case are one thread."""

import asyncio
import re
import smtplib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from ipaddress import IPv6Address
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from lozenge.contracts.display_text import shortened
from lozenge_downstream.channels.base.channel import Channel as Base
from lozenge_downstream.channels.base.channel import Message, Refused, Result, Retry, Sent, with_links
from lozenge_downstream.channels.base.secrets import Secret
from lozenge_downstream.channels.base.thread_pool import Threads, threads

DOMAIN = "lozenge.invalid"
MAX_ANSWER = 200
"""Characters of a server's answer in an error."""
PERMANENT = 500
LOGIN = frozenset({530, 534, 535, 538})
"""Codes about the login or the encryption of the connection (RFC 4954): they are fixed in the routing file."""
TLS_PORT = 465
"""Here a connection is encrypted from its start (RFC 8314): a client that begins otherwise waits in vain."""
MAX_TITLE, MAX_SEVERITY = 140, 40
"""Characters of a title and of a severity in a subject."""
MAX_SUBJECT = 990
"""Bytes of its header as it is encoded; RFC 5322 allows 998."""


def _address(text: str) -> str:
    """An address such as "fraud@example.com"; beyond ASCII it needs a mail server with SMTPUTF8."""
    try:
        if _FORM.fullmatch(text):
            Address(addr_spec=_BEYOND_ASCII.sub("x", text))
            return text
    except (ValueError, LookupError, AttributeError, MessageError):  # the parser of `email` raises many types
        pass
    raise ValueError(f"{text!r} is no address such as fraud@example.com, one and without a name")


def _host(text: str) -> str:
    if ":" in text:
        try:
            IPv6Address(text)
        except ValueError:
            raise ValueError(f"{text!r} is no host; write the port as port = 587") from None
    return text


_FORM = re.compile(r"[^@\s]+@[^@\s]+")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_Address = Annotated[str, AfterValidator(_address)]


class Channel(Base):
    """`security` encrypts the connection from its start ("tls"), after it ("starttls") or not at all.

    The default is "tls" on port 465, else "starttls". `host` is not restricted: most mail servers are in a private
    network.
    """

    type: Literal["email"]
    host: Annotated[str, Field(pattern=r"^[^\s/]+$"), AfterValidator(_host)]
    port: Annotated[int, Field(ge=1, le=65_535)] = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str | None = None
    password: Secret | None = None
    sender_address: Annotated[_Address, Field(alias="from")]
    to: Annotated[tuple[_Address, ...], Field(min_length=1)]
    concurrency: Annotated[int, Field(ge=1, le=16)] = 2

    @model_validator(mode="before")
    @classmethod
    def _by_port(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("port") == TLS_PORT:
            return {"security": "tls"} | given
        return given

    @model_validator(mode="after")
    def _has_a_whole_login(self) -> Self:
        if (self.user is None) != (self.password is None):
            raise ValueError("a login has both user and password; without a login, it has neither")
        return self

    @asynccontextmanager
    async def sender(self) -> "AsyncIterator[Sender]":
        """Opens nothing: mail servers close idle connections."""
        with threads(self.concurrency) as own:
            yield Sender(self, own)


class Sender:
    """One connection for each mail."""

    def __init__(self, channel: Channel, threads: Threads) -> None:
        self._channel, self._threads = channel, threads

    async def send(self, message: Message) -> Result:
        """One attempt."""
        mail = compose(message, self._channel.sender_address, self._channel.to)
        password = self._channel.password.resolve().get_secret_value() if self._channel.password else ""
        try:
            async with asyncio.timeout(self._channel.timeout):
                return await self._threads.run(lambda: self._send(mail, password))
        except TimeoutError:
            return Retry(f"no response within {self._channel.timeout:g} s")

    def _send(self, mail: EmailMessage, password: str) -> Result:
        channel = self._channel
        try:
            with (
                smtplib.SMTP_SSL(
                    channel.host, channel.port, timeout=channel.timeout, context=ssl.create_default_context()
                )
                if channel.security == "tls"
                else smtplib.SMTP(channel.host, channel.port, timeout=channel.timeout)
            ) as server:
                if channel.security == "starttls":
                    server.starttls(context=ssl.create_default_context())
                if channel.user is not None:
                    server.login(channel.user, password)
                refused = server.send_message(mail)
        except smtplib.SMTPResponseException as error:
            error_text = _said(error.smtp_code, error.smtp_error)
            permanent = _is_permanent(error.smtp_code) and not isinstance(error, smtplib.SMTPAuthenticationError)
            return Refused(error_text) if permanent else Retry(error_text)
        except smtplib.SMTPRecipientsRefused as error:
            answers = sorted({_said(code, text) for code, text in error.recipients.values()})
            error_text = shortened(f"every recipient was refused: {'; '.join(answers)}", MAX_ANSWER)
            permanent = all(_is_permanent(code) for code, _ in error.recipients.values())
            return Refused(error_text) if permanent else Retry(error_text)
        except UnicodeEncodeError:
            return Retry("the user or the password has a character beyond ASCII, which this client cannot send")
        except (smtplib.SMTPException, OSError) as error:
            return Retry(f"{type(error).__name__}: {error}")
        # a retry would send it twice to the other recipients
        return Refused(f"refused for {', '.join(refused)}; sent to the others") if refused else Sent()


def _is_permanent(code: int) -> bool:
    """Whether a mail is refused, and not the login that all mails have in common."""
    return code >= PERMANENT and code not in LOGIN


def _said(code: int, text: bytes | str) -> str:
    """The answer of a mail server, in one line."""
    answer = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return shortened(f"SMTP {code}: {' '.join(answer.split())}", MAX_ANSWER)


def _header_bytes(mail: EmailMessage, subject: str) -> int:
    """The length of the encoded header, without the end of its last line."""
    return len(mail.policy.fold("Subject", subject).encode().rstrip())


def compose(message: Message, sender: str, to: tuple[str, ...]) -> EmailMessage:
    """The mail for a notification."""
    fields: Any = message.fields
    mail = EmailMessage()
    line = " ".join(fields["title"].split())
    severity = shortened(fields["severity"], MAX_SEVERITY)

    def subject(title: str) -> str:
        return f"[{severity}] {title} ({fields['status']})"

    title = shortened(shortened(line, MAX_TITLE), MAX_SUBJECT, lambda title: _header_bytes(mail, subject(title)))
    mail["Subject"] = subject(title)
    mail["From"], mail["To"] = sender, ", ".join(to)
    mail["Date"] = format_datetime(datetime.fromisoformat(fields["created_at"]))
    mail["Message-ID"] = f"<{message.id}@{DOMAIN}>"
    mail["References"] = f"<{fields['case_id']}@{DOMAIN}>"
    mail["Auto-Submitted"] = "auto-generated"
    text = with_links(fields["text"], fields)
    whole = "" if title == line else f"{line}\n\n"
    mail.set_content(f"{whole}{text}\n\n{fields['subject']}\ncase {fields['case_id']}\nnotification {message.id}\n")
    return mail

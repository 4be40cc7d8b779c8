"""E-mail by SMTP. The `Message-ID` is the notification's id; the mails of a case are one thread."""

import asyncio
import smtplib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from lozenge.contracts.texts import shortened
from lozenge_downstream.channels.base.channel import Channel as Base
from lozenge_downstream.channels.base.channel import Message, Refused, Result, Retry, Sent, with_links
from lozenge_downstream.channels.base.secrets import Secret
from lozenge_downstream.channels.base.thread_pool import Threads, threads

DOMAIN = "lozenge.invalid"
MAX_ANSWER = 200
"""Characters of a server's answer in an error."""
PERMANENT = 500
MAX_TITLE = 140
"""Characters of a title in a subject: encoded, the header is shorter than the 998 bytes that RFC 5322 allows."""


class Channel(Base):
    """`security` encrypts the connection from its start ("tls"), after it ("starttls") or not at all.

    `host` is not restricted: most mail servers are in a private network.
    """

    type: Literal["email"]
    host: Annotated[str, Field(pattern=r"^[^\s/]+$")]
    port: Annotated[int, Field(ge=1, le=65_535)] = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str | None = None
    password: Secret | None = None
    sender_address: Annotated[str, Field(alias="from", pattern=r"^[^@\s]+@[^@\s]+$")]
    to: Annotated[tuple[Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+$")], ...], Field(min_length=1)]
    concurrency: Annotated[int, Field(ge=1, le=16)] = 2

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
            # a wrong login concerns every message, and is fixed in the routing file
            permanent = error.smtp_code >= PERMANENT and not isinstance(error, smtplib.SMTPAuthenticationError)
            return Refused(error_text) if permanent else Retry(error_text)
        except smtplib.SMTPRecipientsRefused as error:
            answers = sorted({_said(code, text) for code, text in error.recipients.values()})
            error_text = shortened(f"every recipient was refused: {'; '.join(answers)}", MAX_ANSWER)
            permanent = min(code for code, _ in error.recipients.values()) >= PERMANENT
            return Refused(error_text) if permanent else Retry(error_text)
        except (smtplib.SMTPException, OSError) as error:
            return Retry(f"{type(error).__name__}: {error}")
        # a retry would send it twice to the other recipients
        return Refused(f"refused for {', '.join(refused)}; sent to the others") if refused else Sent()


def _said(code: int, text: bytes | str) -> str:
    """The answer of a mail server, in one line."""
    answer = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return shortened(f"SMTP {code}: {' '.join(answer.split())}", MAX_ANSWER)


def compose(message: Message, sender: str, to: tuple[str, ...]) -> EmailMessage:
    """The mail for a notification."""
    fields: Any = message.fields
    mail = EmailMessage()
    line = " ".join(fields["title"].split())
    title = shortened(line, MAX_TITLE)
    mail["Subject"] = f"[{fields['severity']}] {title} ({fields['status']})"
    mail["From"], mail["To"] = sender, ", ".join(to)
    mail["Date"] = format_datetime(datetime.fromisoformat(fields["created_at"]))
    mail["Message-ID"] = f"<{message.id}@{DOMAIN}>"
    mail["References"] = f"<{fields['case_id']}@{DOMAIN}>"
    mail["Auto-Submitted"] = "auto-generated"
    text = with_links(fields["text"], fields)
    whole = "" if title == line else f"{line}\n\n"
    mail.set_content(f"{whole}{text}\n\n{fields['subject']}\ncase {fields['case_id']}\nnotification {message.id}\n")
    return mail

"""E-mail by SMTP. The `Message-ID` is the notification's id, and those of a case are one thread."""

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

from lozenge_downstream.channels.base.channel import Channel as Base
from lozenge_downstream.channels.base.channel import Drop, Message, Result, Retry, Sent, with_links
from lozenge_downstream.channels.base.secrets import Secret
from lozenge_downstream.channels.base.thread_pool import Threads, threads

DOMAIN = "lozenge.invalid"
PERMANENT = 500


class Channel(Base):
    """`security` is how the connection is encrypted: from its start ("tls"), after it ("starttls") or not at all.

    `host` is not guarded: mail servers are mostly on a network of one's own.
    """

    type: Literal["email"]
    host: str
    port: Annotated[int, Field(ge=1, le=65_535)] = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str | None = None
    password: Secret | None = None
    sender_address: Annotated[str, Field(alias="from", pattern=r"^[^@\s]+@[^@\s]+$")]
    to: Annotated[tuple[Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+$")], ...], Field(min_length=1)]
    concurrency: Annotated[int, Field(ge=1, le=16)] = 2

    @asynccontextmanager
    async def sender(self) -> "AsyncIterator[Sender]":
        """Nothing is opened: mail servers end idle connections."""
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
            return Retry(f"no answer within {self._channel.timeout:g} s")

    def _send(self, mail: EmailMessage, password: str) -> Result:
        told = self._channel
        try:
            with (
                smtplib.SMTP_SSL(told.host, told.port, timeout=told.timeout, context=ssl.create_default_context())
                if told.security == "tls"
                else smtplib.SMTP(told.host, told.port, timeout=told.timeout)
            ) as server:
                if told.security == "starttls":
                    server.starttls(context=ssl.create_default_context())
                if told.user is not None:
                    server.login(told.user, password)
                refused = server.send_message(mail)
        except smtplib.SMTPResponseException as error:
            said = f"SMTP {error.smtp_code}"
            # What is wrong with the login is wrong for every message, and is mended in the file.
            hopeless = error.smtp_code >= PERMANENT and not isinstance(error, smtplib.SMTPAuthenticationError)
            return Drop(said) if hopeless else Retry(said)
        except smtplib.SMTPRecipientsRefused as error:
            codes = {code for code, _ in error.recipients.values()}
            said = f"every recipient was refused: SMTP {', '.join(map(str, sorted(codes)))}"
            return Drop(said) if min(codes) >= PERMANENT else Retry(said)
        except (smtplib.SMTPException, OSError) as error:
            return Retry(f"{type(error).__name__}: {error}")
        # Sending it again would send it twice to those who took it.
        return Drop(f"refused for {', '.join(refused)}; sent to the others") if refused else Sent()


def compose(message: Message, sender: str, to: tuple[str, ...]) -> EmailMessage:
    """The mail for a notification."""
    told: Any = message.fields
    mail = EmailMessage()
    mail["Subject"] = " ".join(f"[{told['severity']}] {told['title']} ({told['status']})".split())
    mail["From"], mail["To"] = sender, ", ".join(to)
    mail["Date"] = format_datetime(datetime.fromisoformat(told["created_at"]))
    mail["Message-ID"] = f"<{message.id}@{DOMAIN}>"
    mail["References"] = f"<{told['case_id']}@{DOMAIN}>"
    mail["Auto-Submitted"] = "auto-generated"
    text = with_links(told["text"], told)
    mail.set_content(f"{text}\n\n{told['subject']}\ncase {told['case_id']}\nnotification {message.id}\n")
    return mail

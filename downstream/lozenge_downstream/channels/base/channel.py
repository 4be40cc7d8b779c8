"""What a channel is: it opens a sender, and the sender answers each message with `Sent`, `Retry` or `Refused`."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from lozenge.contracts.display_text import shortened


@dataclass(frozen=True, slots=True)
class Sent:
    """The receiver has it."""


@dataclass(frozen=True, slots=True)
class Retry:
    """The receiver does not have it, or may not have it. `after` is the wait in seconds that it requested, if any.

    It gets no other message in that time either.
    """

    error: str
    after: float | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A person has to act before an attempt can succeed: the message has failed, and is kept.

    With `disable` the receiver refuses all messages: they wait, and the channel is disabled.
    """

    error: str
    disable: bool = False


Result = Sent | Retry | Refused
MAX_LINK_TITLE = 80
MAX_RETRY = 7 * 86_400.0
"""Seconds: the longest wait between two attempts."""
MAX_URL = 1_000
"""Characters; programs do not open longer ones."""


@dataclass(frozen=True, slots=True)
class Message:
    """One notification: `body` is its JSON text, the same in all attempts; `fields` is the data in it."""

    id: str
    body: str
    fields: Mapping[str, Any]


def links(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The title of each alert, on one short line, and the URL of its feedback page.

    There are none if the notifier has no feedback pages.
    """
    titled = ((" ".join(alert["title"].split()), alert.get("feedback_url", "")) for alert in fields["alerts"])
    return [(shortened(title, MAX_LINK_TITLE), url) for title, url in titled if 0 < len(url) <= MAX_URL]


def with_links(text: str, fields: Mapping[str, Any]) -> str:
    """`text` with the links below, for receivers of plain text."""
    return "\n\n".join([text, *(f"{title}, right or wrong?\n{url}" for title, url in links(fields))])


class Sender(Protocol):
    """Sends to one receiver. `send` returns within `timeout` and raises nothing that the receiver causes.

    It reads secrets for each attempt and raises SecretUnusable.
    """

    async def send(self, message: Message) -> Result:
        """One attempt."""
        ...


class Channel(BaseModel, ABC):
    """The configuration that all channels have. Times are seconds; `concurrency` limits its messages in flight.

    A failed attempt is retried after about `first_retry`, then after four times as long each time, up to `max_retry`.
    After `attempts` the message has failed. The defaults span about two days.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str
    timeout: Annotated[float, Field(gt=0, le=120)] = 15.0
    concurrency: Annotated[int, Field(ge=1, le=256)] = 16
    attempts: Annotated[int, Field(ge=1, le=100)] = 11
    first_retry: Annotated[float, Field(gt=0, le=MAX_RETRY)] = 5.0
    max_retry: Annotated[float, Field(gt=0, le=MAX_RETRY)] = 43_200.0

    @abstractmethod
    def sender(self) -> AbstractAsyncContextManager[Sender]:
        """Opens its connections."""

"""What a channel is: it opens a sender, and the sender answers each message with `Sent`, `Retry` or `Drop`."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, ConfigDict, Field


@dataclass(frozen=True, slots=True)
class Sent:
    """The receiver has it."""


@dataclass(frozen=True, slots=True)
class Retry:
    """The receiver does not have it, or it is not known; `after` is the wait in seconds that it asked for, if any.

    In that time it gets no other message either.
    """

    error: str
    after: float | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """No repetition will help. With `disable` the receiver wants nothing more at all: the channel is turned off."""

    error: str
    disable: bool = False


Result = Sent | Retry | Drop
MAX_LINK_TITLE = 80
MAX_URL = 1_000
"""Characters; what is longer no program would open."""


@dataclass(frozen=True, slots=True)
class Message:
    """One notification: `body` is its JSON text, the same over all attempts, and `fields` what stands in it."""

    id: str
    body: str
    fields: Mapping[str, Any]


def links(told: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What `fields` say of judging: each alert's title, on one short line, and the page on which it is judged.

    As many as there are alerts in `fields` at most; none if the notifier has no such page.
    """
    titled = ((" ".join(alert["title"].split()), alert.get("verdict_url", "")) for alert in told["alerts"])
    return [(title[:MAX_LINK_TITLE], url) for title, url in titled if 0 < len(url) <= MAX_URL]


def with_links(text: str, told: Mapping[str, Any]) -> str:
    """`text` and the links under it, for what shows plain text."""
    return "\n\n".join([text, *(f"{title}, right or wrong?\n{url}" for title, url in links(told))])


class Sender(Protocol):
    """Sends to one receiver; `send` never raises for what the receiver does, and takes no longer than `timeout`.

    It reads secrets anew for each attempt; that one cannot be used (SecretUnusable) is left to whoever sends.
    """

    async def send(self, message: Message) -> Result:
        """One attempt."""
        ...


class Channel(BaseModel, ABC):
    """What every channel is told. Times are seconds; `concurrency` bounds its messages in flight.

    A failed attempt is repeated after about `first_retry`, then four times as long each time, up to
    `max_retry`; after `attempts` the message is a dead letter. The defaults span about two days.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str
    timeout: Annotated[float, Field(gt=0, le=120)] = 15.0
    concurrency: Annotated[int, Field(ge=1, le=256)] = 16
    attempts: Annotated[int, Field(ge=1, le=100)] = 11
    first_retry: Annotated[float, Field(gt=0)] = 5.0
    max_retry: Annotated[float, Field(gt=0)] = 43_200.0

    @abstractmethod
    def sender(self) -> AbstractAsyncContextManager[Sender]:
        """Opens what it needs to send."""

"""Dead letters as those see them who have to do something about them. Here they are only read."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from textwrap import shorten

from confluent_kafka import Message

from lozenge.contracts import headers, topics
from lozenge.contracts.record import Place
from lozenge.errors import UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.topic_reader import retained

REASON = 120
"""Characters that are enough to tell one reason from another."""


@dataclass(frozen=True)
class Letter:
    """One dead letter: at `place` in the topic of its `app`, once at `origin` in `topic`; why, and how often it failed.

    An `origin` below 0 stands for no record. `first_failed_at` is ISO 8601 in UTC, `at` when this letter was written.
    """

    place: Place
    app: str
    topic: str
    origin: Place
    stage: str
    error: str
    message: str
    attempt: int
    first_failed_at: str
    at: datetime
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]

    @classmethod
    def of(cls, app: str, message: Message) -> "Letter":
        """The letter in a record of a dead-letter topic; whoever wrote it, every record there is one."""
        given = message.headers() or []
        pairs = [(name, value) for name, value in (given.items() if isinstance(given, dict) else given)]
        kept = [(name, value.encode() if isinstance(value, str) else value) for name, value in pairs]
        said = {name: (value or b"").decode(errors="replace") for name, value in kept}

        def told(name: str) -> str:
            return said.get(f"{headers.ERROR_PREFIX}{name}", "")

        return cls(
            place=(message.partition() or 0, message.offset() or 0),
            app=app,
            topic=told("topic"),
            origin=(_number(told("partition")), _number(told("offset"))),
            stage=told("stage"),
            error=told("exception.class.name"),
            message=told("exception.message"),
            attempt=max(1, _number(said.get(headers.ATTEMPT, ""))),
            first_failed_at=said.get(headers.FIRST_FAILED_AT, ""),
            at=datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC),
            key=message.key(),
            value=message.value(),
            headers=kept,
        )

    @property
    def reason(self) -> str:
        """At which stage it failed and why, in a line."""
        said = self.message.strip() or self.error or "nobody said why"
        return f"{self.stage}: {shorten(said.splitlines()[0], REASON, placeholder=' ...')}"


def letters(kafka: KafkaSettings, app: str) -> Iterator[Letter]:
    """Every letter of `app` that is retained; raises UsageError if there is no such app, BrokerUnavailable."""
    topic, there = topics.dead_letters(app), partitions(kafka)
    if topic not in there:
        apps = ", ".join(_apps(there)) or "none"
        raise UsageError(
            f"looking for dead letters of {app}: there is no topic {topic}", hint=f"the apps that have one: {apps}"
        )
    yield from (Letter.of(app, message) for message in retained(kafka, topic, there[topic]))


def apps_with_dead_letters(kafka: KafkaSettings) -> list[str]:
    """Every app that has a topic for dead letters, by name; raises BrokerUnavailable."""
    return _apps(partitions(kafka))


def _apps(there: Iterable[str]) -> list[str]:
    return sorted(app for topic in there if (app := topics.app_of_dead_letters(topic)))


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return -1

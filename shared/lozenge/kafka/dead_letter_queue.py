"""Dead letters of an app and their resolutions, read from their topics and written to them.

No dead letter is ever deleted: it stays in its topic for as long as that retains it. What was replayed or dropped is
recorded in a topic of the app, in the transaction that does it. All of that goes under one transactional id per app.
So of two processes that resolve dead letters of one app the earlier one is fenced, and nothing is done twice.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from confluent_kafka import Message

from lozenge.contracts import dead_letters as names
from lozenge.contracts.dead_letters import DeadLetter
from lozenge.contracts.record import Record, RecordPosition
from lozenge.contracts.topic_patterns import app_of_dead_letters
from lozenge.errors import UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics, partitions, topic_id
from lozenge.kafka.topic_reader import read_log, retained
from lozenge.kafka.writers import TransactionalWriter
from lozenge.moments import from_milliseconds
from lozenge.protocol.dlq_resolutions import DeadLetterSelection, Resolution, ranges_of


def dead_letter_of(app: str, message: Message) -> DeadLetter:
    """The dead letter in a record of a dead-letter topic, by whatever producer: every record there is one."""
    found = message.headers() or []
    pairs = [(name, value) for name, value in (found.items() if isinstance(found, dict) else found)]
    kept = [(name, value.encode() if isinstance(value, str) else value) for name, value in pairs]
    texts = {name: (value or b"").decode(errors="replace") for name, value in kept}

    def text(name: str) -> str:
        return texts.get(name, "")

    return DeadLetter(
        position=(message.partition() or 0, message.offset() or 0),
        app=app,
        topic=text(names.SOURCE_TOPIC),
        origin=(_number(text(names.SOURCE_PARTITION)), _number(text(names.SOURCE_OFFSET))),
        stage=text(names.STAGE),
        error=text(names.ERROR),
        message=text(names.MESSAGE),
        attempt=max(1, _number(text(names.ATTEMPT))),
        first_failed_at=text(names.FIRST_FAILED_AT),
        at=from_milliseconds(message.timestamp()[1]),
        key=message.key(),
        value=message.value(),
        headers=kept,
    )


def read_dead_letters(kafka: KafkaSettings, app: str) -> Iterator[DeadLetter]:
    """Every dead letter of `app` that is retained; raises UsageError if there is no such app, BrokerUnavailable."""
    topic, existing = kafka.topics.dead_letters(app), partitions(kafka)
    if topic not in existing:
        apps = ", ".join(_apps(kafka, existing)) or "none"
        raise UsageError(
            f"looking for dead letters of {app}: there is no topic {topic}", hint=f"the apps that have one: {apps}"
        )
    yield from (dead_letter_of(app, message) for message in retained(kafka, topic, existing[topic]))


def apps_with_dead_letters(kafka: KafkaSettings) -> list[str]:
    """Every app that has a topic for dead letters, by name; raises BrokerUnavailable."""
    return _apps(kafka, partitions(kafka))


def resolutions(kafka: KafkaSettings, app: str) -> list[Resolution]:
    """Every resolution of dead letters of `app`, the oldest first; raises BrokerUnavailable."""
    return read_log(kafka, kafka.topics.resolutions(app).name, Resolution)


def unresolved(kafka: KafkaSettings, app: str) -> Iterator[DeadLetter]:
    """The dead letters of `app` that no resolution covers; raises as `read_dead_letters` does."""
    resolved = {position for resolution in _in_force(kafka, app) for position in resolution.positions()}
    yield from (dead_letter for dead_letter in read_dead_letters(kafka, app) if dead_letter.position not in resolved)


def resolution_of(kafka: KafkaSettings, app: str, position: RecordPosition) -> Resolution | None:
    """The resolution of the dead letter at `position`; None if it is unresolved. Raises BrokerUnavailable."""
    return next((resolution for resolution in _in_force(kafka, app) if position in resolution.positions()), None)


class Resolver:
    """The one process that resolves dead letters of `app`; once there is another it raises Fenced.

    Records given to `write` go out in one transaction with the resolution.
    """

    def __init__(self, kafka: KafkaSettings, app: str) -> None:
        self._kafka, self._app = kafka, app
        ensure_topics(kafka, [kafka.topics.resolutions(app)])
        self._writer = TransactionalWriter(kafka, f"{app}@replay")
        self._writer.fence()  # before any dead letter is read: resolutions of an earlier process are final

    def choose(self, selection: DeadLetterSelection) -> list[DeadLetter]:
        """The unresolved dead letters of `selection`; raises as that does."""
        return selection.of(self._app, unresolved(self._kafka, self._app))

    def write(
        self, action: str, resolved: Sequence[DeadLetter], records: Iterable[Record] = (), **fields: Any
    ) -> Resolution:
        """Writes `records`, and that `action` was taken on `resolved`; returns the resolution."""
        current = topic_id(self._kafka, self._kafka.topics.dead_letters(self._app))
        ranges = ranges_of(dead_letter.position for dead_letter in resolved)
        resolution = Resolution(action, current, ranges, len(resolved), **fields)
        written = Record(self._kafka.topics.resolutions(self._app).name, 0, None, msgspec.json.encode(resolution))
        self._writer.write([*records, written])
        return resolution


def _in_force(kafka: KafkaSettings, app: str) -> list[Resolution]:
    """Without those of an earlier topic of the same name: their offsets mean other dead letters."""
    found = resolutions(kafka, app)
    current = topic_id(kafka, kafka.topics.dead_letters(app)) if found else ""
    return [resolution for resolution in found if resolution.topic_id == current]


def _apps(kafka: KafkaSettings, existing: Iterable[str]) -> list[str]:
    return sorted(app for topic in existing if (app := app_of_dead_letters(kafka.topics, topic)))


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return -1

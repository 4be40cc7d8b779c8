"""Dead letters of upstream and downstream are sent back to their topics, where they are processed again.

The records and their resolution are one transaction, so each is sent once. A raw record then has a second offset; an
alert that was notified already is deduplicated by its id.
"""

import re
from collections.abc import Iterator, Sequence

from lozenge.apps import is_sink
from lozenge.contracts.dead_letters import TRUNCATED, DeadLetter, replay_headers
from lozenge.contracts.record import Record, format_positions
from lozenge.contracts.topic_patterns import alert_topics
from lozenge.errors import UsageError
from lozenge.kafka.dead_letter_queue import Resolver
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.protocol.dlq_resolutions import DROPPED, REPLAYED, DeadLetterSelection, Resolution

STEP = 1000
"""Dead letters per transaction; the resolution with their positions must fit into one record."""
_OURS = ("pay.", "lozenge.", "_")


def resend(kafka: KafkaSettings, app: str, choice: DeadLetterSelection, message: str) -> Iterator[Resolution]:
    """Sends the dead letters of `choice` back, in the order of their records; yields each transaction's resolution.

    Raises UsageError before anything is sent if one of them cannot be sent; Fenced, BrokerUnavailable.
    """
    resolver = Resolver(kafka, app)
    chosen = resolver.choose(choice)
    refuse_unsendable(kafka, app, chosen)
    for step in _steps(chosen):
        yield resolver.write(REPLAYED, step, map(_original, step), message=message)


def drop(kafka: KafkaSettings, app: str, choice: DeadLetterSelection, message: str) -> Iterator[Resolution]:
    """Marks the dead letters of `choice` as resolved; they stay in their topic.

    Yields each transaction's resolution; raises UsageError, Fenced, BrokerUnavailable.
    """
    resolver = Resolver(kafka, app)
    for step in _steps(resolver.choose(choice)):
        yield resolver.write(DROPPED, step, message=message)


def refuse_unsendable(kafka: KafkaSettings, app: str, dead_letters: Sequence[DeadLetter]) -> None:
    """Raises UsageError if one is truncated, or did not come from a topic that `app` reads.

    Headers are checked because any producer can write them.
    """
    doing, show = f"replaying dead letters of {app}", f"`lozenge dlq show {app} POSITION`"
    if is_sink(app) and dead_letters:
        raise UsageError(
            f"{doing}: their records are still in their topics, and would be there twice",
            hint=f"{show} shows why they cannot be read; `lozenge dlq drop {app} POSITION`",
        )
    if undelivered := [each for each in dead_letters if each.stage == "deliver"]:
        raise UsageError(
            f"{doing}: a webhook refused {_named(undelivered)} in every attempt, and no topic leads to it",
            hint=f"{show} names the channel; `lozenge channels retry CHANNEL`, then `lozenge dlq drop {app} POSITION`",
        )
    if truncated := [each for each in dead_letters if TRUNCATED in dict(each.headers)]:
        raise UsageError(
            f"{doing}: {_named(truncated)} has only the beginning of a record that was too large",
            hint=f"{show} shows the record's position; fix it at its source, then `lozenge dlq drop {app} POSITION`",
        )
    counts = partitions(kafka)
    if foreign := [
        x for x in dead_letters if not _reads(kafka, app, x.topic) or not 0 <= x.origin[0] < counts.get(x.topic, 0)
    ]:
        raise UsageError(
            f"{doing}: {_named(foreign)} did not come from a topic that it reads",
            hint=f"{show} shows its origin; name the others by position",
        )


def _steps(dead_letters: Sequence[DeadLetter]) -> Iterator[Sequence[DeadLetter]]:
    return (dead_letters[begin : begin + STEP] for begin in range(0, len(dead_letters), STEP))


def _reads(kafka: KafkaSettings, app: str, topic: str) -> bool:
    if app == "downstream":
        return re.match(alert_topics(kafka.topics), topic) is not None
    raw = topic.removeprefix(kafka.topics.prefix)
    return bool(raw) and kafka.topics.prefixed(raw) == topic and not raw.startswith(_OURS)


def _named(dead_letters: Sequence[DeadLetter]) -> str:
    few = format_positions([each.position for each in dead_letters[:5]])
    return f"{few} and {len(dead_letters) - 5} more" if len(dead_letters) > 5 else few


def _original(failed: DeadLetter) -> Record:
    """The original record for the partition of its key; its headers say where it first failed, and how often."""
    return Record(failed.topic, failed.origin[0], failed.key, failed.value, replay_headers(failed.headers))

"""Letters of the platform's own stages go back to where they came from, and whoever reads there decides anew.

Exactly once, as far as we go: the records and the line that says so are one transaction. A raw record then arrives a
second time; an alert that came through already collapses by its id.
"""

import re
from collections.abc import Iterator, Sequence

from lozenge.contracts import topics
from lozenge.contracts.headers import CUT, for_another_try
from lozenge.contracts.record import places_of
from lozenge.errors import UsageError
from lozenge.kafka.dead_letter_queue import Letter
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.writers import Record
from lozenge.protocol.dlq_resolutions import DROPPED, REPLAYED, Choice, Resolution, Resolver

STEP = 1000
"""Letters in a transaction; the line that names their places must be no more than a record may hold."""
_OURS = ("pay.", "lozenge.", "_")


def send_back(kafka: KafkaSettings, app: str, choice: Choice, message: str) -> Iterator[Resolution]:
    """Sends the letters of `choice` back, in the order of what they stand for, and tells of each transaction.

    Raises UsageError before anything is sent if one of them cannot go back; Fenced, BrokerUnavailable.
    """
    resolver = Resolver(kafka, app)
    chosen = resolver.choose(choice)
    refuse_strays(kafka, app, chosen)
    for step in _steps(chosen):
        yield resolver.write(REPLAYED, step, (_as_it_was(letter) for letter in step), message=message)


def drop(kafka: KafkaSettings, app: str, choice: Choice, message: str) -> Iterator[Resolution]:
    """Writes down that nothing is to be done about the letters of `choice`, which stay in their topic.

    Tells of each transaction; raises UsageError, Fenced, BrokerUnavailable.
    """
    resolver = Resolver(kafka, app)
    for step in _steps(resolver.choose(choice)):
        yield resolver.write(DROPPED, step, message=message)


def refuse_strays(kafka: KafkaSettings, app: str, letters: Sequence[Letter]) -> None:
    """Raises UsageError if a letter is not whole, or did not come from a topic that `app` reads: headers are anybody's
    words.
    """
    doing, show = f"replaying dead letters of {app}", f"`lozenge dlq show {app} PLACE`"
    if undelivered := [letter for letter in letters if letter.stage == "deliver"]:
        raise UsageError(
            f"{doing}: a webhook refused {_named(undelivered)} to the last attempt, and no topic leads to it",
            hint=f"{show} has the notification; hand it over, then `lozenge dlq drop {app} PLACE`",
        )
    if parts := [letter for letter in letters if CUT in dict(letter.headers)]:
        raise UsageError(
            f"{doing}: {_named(parts)} holds the beginning of a record that was too large for a letter",
            hint=f"{show} tells where the record lies; mend it there, then `lozenge dlq drop {app} PLACE`",
        )
    there = partitions(kafka)
    if strays := [x for x in letters if not _reads(app, x.topic) or not 0 <= x.origin[0] < there.get(x.topic, 0)]:
        raise UsageError(
            f"{doing}: {_named(strays)} did not come from a topic that it reads",
            hint=f"{show} tells from where; name the others by their places",
        )


def _steps(letters: Sequence[Letter]) -> Iterator[Sequence[Letter]]:
    return (letters[begin : begin + STEP] for begin in range(0, len(letters), STEP))


def _reads(app: str, topic: str) -> bool:
    if app == "downstream":
        return re.match(topics.ALERTS_PATTERN, topic) is not None
    return bool(topic) and not topic.startswith(_OURS)


def _named(letters: Sequence[Letter]) -> str:
    few = places_of([letter.place for letter in letters[:5]])
    return f"{few} and {len(letters) - 5} more" if len(letters) > 5 else few


def _as_it_was(letter: Letter) -> Record:
    """The record again, where its key lives; its headers also say where it first failed, and how often."""
    return Record(letter.topic, letter.origin[0], letter.key, letter.value, for_another_try(letter.headers))

"""Dead letters for a person: how many are unresolved and why, one in a line, and one whole."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from lozenge.contracts.dead_letters import DeadLetter
from lozenge.contracts.record import Place, places_of
from lozenge.errors import UsageError
from lozenge.kafka.dead_letter_queue import read_dead_letters, resolution_of
from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.observe.topic_tail import decoded, text

Row = dict[str, Any]


def summaries(found: Iterable[DeadLetter], by: Callable[[DeadLetter], str]) -> list[Row]:
    """One row for each group of dead letters, the largest first: how many, from when to when, mostly why."""
    rows: dict[str, Row] = {}
    reasons: dict[str, Counter[str]] = {}
    for letter in found:
        group = by(letter)
        row = rows.setdefault(group, {"app": letter.app, "standing": 0, "oldest": letter.at, "newest": letter.at})
        row |= {
            "standing": row["standing"] + 1,
            "oldest": min(row["oldest"], letter.at),
            "newest": max(row["newest"], letter.at),
        }
        reasons.setdefault(group, Counter())[letter.reason] += 1
    for group, row in rows.items():
        row["oldest"], row["newest"] = (row[which].isoformat(timespec="seconds") for which in ("oldest", "newest"))
        row["reason"] = reasons[group].most_common(1)[0][0]
    return sorted(rows.values(), key=lambda row: -row["standing"])


def row_of(letter: DeadLetter) -> Row:
    """A letter in a line."""
    return {
        "place": places_of([letter.place]),
        "key": text(letter.key),
        "attempt": letter.attempt,
        "first_failed_at": letter.first_failed_at or None,
        "from": f"{letter.topic} {places_of([letter.origin])}",
        "reason": letter.reason,
    }


def whole(kafka: KafkaSettings, app: str, place: Place) -> Row:
    """The letter at `place`, whether it stands or not; raises UsageError if there is none, BrokerUnavailable."""
    letter = next((letter for letter in read_dead_letters(kafka, app) if letter.place == place), None)
    if letter is None:
        raise UsageError(
            f"looking for the dead letter {places_of([place])} of {app}: there is none",
            hint=f"`lozenge dlq show {app}` lists those that stand",
        )
    line = resolution_of(kafka, app, place)
    return row_of(letter) | {
        "error": letter.error,
        "message": letter.message,
        "at": letter.at.isoformat(timespec="milliseconds"),
        "now": f"{line.action} by {line.by}{f': {line.message}' if line.message else ''}" if line else "stands",
        "value": decoded(letter.value),
        "headers": {name: text(value) for name, value in letter.headers},
    }


def put_aside(kafka: KafkaSettings, app: str, event: Place) -> str:
    """What became of `event`, a place in the input of `app`, as its newest dead letter; "" if it is none."""
    found = [letter for letter in read_dead_letters(kafka, app) if letter.origin == event]
    if not found:
        return ""
    newest = max(found, key=lambda letter: letter.attempt)
    line = resolution_of(kafka, app, newest.place)
    became = f"was {line.action}" if line else "stands"
    return f"put aside as dead letter {places_of([newest.place])}, which {became}"

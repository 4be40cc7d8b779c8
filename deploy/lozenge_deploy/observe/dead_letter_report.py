"""Dead letters for a person: how many are unresolved and why, one in a line, and one whole."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from lozenge.contracts.dead_letters import DeadLetter
from lozenge.contracts.display_text import shown
from lozenge.contracts.record import RecordPosition, format_positions
from lozenge.errors import UsageError
from lozenge.kafka.dead_letter_queue import read_dead_letters, resolution_of
from lozenge.kafka.schema_registry import settle_ids
from lozenge.kafka.settings import KafkaSettings
from lozenge.streams.reasons import sentence
from lozenge_deploy.observe.record_view import decoded, shown_headers, text

Row = dict[str, Any]
_VARIES = re.compile(r"""'[^']*'|"[^"]*"|[^\s:,;()]*\d[^\s,;()]*""")
_RAISED = re.compile(r"(?P<type>\[?\w+\b\]?).*(?P<place> \(\S+ line \d+(?:, in \S+)?\))$")
"""An error of an author's code, as `lozenge.detector.author_error` describes it."""


def kind_of(dead_letter: DeadLetter) -> str:
    """Stage and reason without what differs from record to record.

    For an error that the code of a detector raised that is its type and place; else the reason but for quoted texts
    and words with a digit.
    """
    if raised := _RAISED.match(dead_letter.message.strip().partition("\n")[0]):
        return f"{dead_letter.stage}: {raised['type']}{raised['place']}"
    return _VARIES.sub("…", dead_letter.reason)


def summaries(found: Iterable[DeadLetter], by: Callable[[DeadLetter], str]) -> list[Row]:
    """One row for each group of dead letters, the largest first: how many, from when to when, mostly why."""
    rows: dict[str, Row] = {}
    reasons: dict[str, Counter[str]] = {}
    for dead_letter in found:
        group = by(dead_letter)
        row = rows.setdefault(
            group, {"app": dead_letter.app, "unresolved": 0, "oldest": dead_letter.at, "newest": dead_letter.at}
        )
        row |= {
            "unresolved": row["unresolved"] + 1,
            "oldest": min(row["oldest"], dead_letter.at),
            "newest": max(row["newest"], dead_letter.at),
        }
        reasons.setdefault(group, Counter())[dead_letter.reason] += 1
    for group, row in rows.items():
        row["oldest"], row["newest"] = (row[which].isoformat(timespec="seconds") for which in ("oldest", "newest"))
        row["reason"] = shown(reasons[group].most_common(1)[0][0])
    return sorted(rows.values(), key=lambda row: -row["unresolved"])


def row_of(dead_letter: DeadLetter, *, card_numbers: bool = False) -> Row:
    """A dead letter in one row; with `card_numbers` it shows these too."""
    return {
        "position": format_positions([dead_letter.position]),
        "key": text(dead_letter.key, card_numbers=card_numbers),
        "attempt": dead_letter.attempt,
        "first_failed_at": dead_letter.first_failed_at or None,
        "from": f"{dead_letter.topic} {format_positions([dead_letter.origin])}",
        "reason": text(dead_letter.reason, card_numbers=card_numbers),
    }


def meanings(dead_letter: DeadLetter) -> Row:
    """What the reasons of upstream mean, as a field `meaning`; nothing for a dead letter of others."""
    found = [meaning for reason in dead_letter.message.split(", ") if (meaning := sentence(reason)) != reason]
    return {"meaning": "; ".join(found)} if found and dead_letter.stage in ("decode", "normalise") else {}


def details(kafka: KafkaSettings, app: str, position: RecordPosition, *, card_numbers: bool = False) -> Row:
    """The dead letter at `position`, resolved or not; with `card_numbers` it shows these too.

    Raises UsageError if there is none, BrokerUnavailable.
    """
    dead_letter = next(
        (dead_letter for dead_letter in read_dead_letters(kafka, app) if dead_letter.position == position), None
    )
    if dead_letter is None:
        raise UsageError(
            f"looking for the dead letter {format_positions([position])} of {app}: there is none",
            hint=f"`lozenge dlq show {app}` lists the unresolved ones",
        )
    schemas = settle_ids(kafka, ())
    line = resolution_of(kafka, app, position)
    return row_of(dead_letter, card_numbers=card_numbers) | {
        "error": dead_letter.error,
        "message": text(dead_letter.message, card_numbers=card_numbers),
        **meanings(dead_letter),
        "at": dead_letter.at.isoformat(timespec="milliseconds"),
        "resolution": f"{line.action} by {line.by}{f': {line.message}' if line.message else ''}"
        if line
        else "unresolved",
        "value": decoded(dead_letter.value, schemas, card_numbers=card_numbers),
        "headers": shown_headers(dead_letter.headers, card_numbers=card_numbers),
    }


def dead_letter_of_event(kafka: KafkaSettings, app: str, event: RecordPosition) -> str:
    """The newest dead letter of `event`, a position in the input of `app`, and its resolution; "" without one."""
    found = [dead_letter for dead_letter in read_dead_letters(kafka, app) if dead_letter.origin == event]
    if not found:
        return ""
    newest = max(found, key=lambda dead_letter: dead_letter.attempt)
    line = resolution_of(kafka, app, newest.position)
    state = line.action if line else "unresolved"
    return f"dead letter {format_positions([newest.position])} ({state})"

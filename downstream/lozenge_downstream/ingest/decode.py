"""The outcome of each record: decode, deduplicate, enrich, rate-limit. Pure, except that it requests new schemas.

A record becomes an accepted alert, a duplicate, a rate-limited alert or a dead letter, each with a reason.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lozenge.contracts import headers
from lozenge.contracts.avro import Codec, UnknownSchema
from lozenge.contracts.display_text import is_blank, readable, shortened
from lozenge.contracts.schemas import Schema
from lozenge.contracts.topic_patterns import detector_of
from lozenge.contracts.topics import Topics
from lozenge.errors import DecodeError, Poison
from lozenge_downstream.dead_letter_encoder import dead_letter_record
from lozenge_downstream.model import Classification, Number, PublishedAlert, ReceivedAlert, ReceivedRecord, labels_of

MAX_ID = 200
"""Characters of an alert's id. Those of the platform have 36; an index of PostgreSQL takes some 2,700 bytes."""
MAX_TITLE = 500
MAX_SEVERITY = 30
"""Characters of a severity that is none of the platform's, which is in the subject of mails."""
MAX_TEXT = 4000
MAX_EVIDENCE = 12
STORED = ("alert_id", "release", "severity")
"""Fields with columns of their own in the store; PostgreSQL stores no text with a NUL."""
NEW = "first alert with this id"
DUPLICATE = "an alert with this id was received before"


class Decoded(NamedTuple):
    """A record and its alert, or the error that prevents one."""

    record: ReceivedRecord
    alert: dict[str, Any] | Poison


class AlertDecoder:
    """Decodes and classifies records. It remembers the schema ids that it has requested."""

    def __init__(self, topics: Topics, learn: Callable[[], Iterable[Schema]] = tuple) -> None:
        """`learn` is called once for each schema id that no packaged schema has."""
        self._topics, self._learn = topics, learn
        self._asked: set[int] = set()
        self._codec = Codec.of("alert")

    def decode(self, records: Iterable[ReceivedRecord]) -> list[Decoded]:
        """Each record with its alert, or with the error that prevents one."""
        return [Decoded(record, self._decode(record)) for record in records]

    def classify(
        self,
        decoded: Sequence[Decoded],
        *,
        seen: Callable[[Sequence[str]], set[str]],
        remaining: Callable[[Sequence[str]], Mapping[str, int]],
        number: Number,
        now: float,
    ) -> list[ReceivedAlert]:
        """The outcomes of a batch. `seen` returns the known ids, `remaining` each detector's rest of its rate limit."""
        known = set(seen([alert["alert_id"] for _, alert in decoded if not isinstance(alert, Poison)]))
        left = dict(remaining(sorted({alert["detector"] for _, alert in decoded if not isinstance(alert, Poison)})))
        new: Counter[str] = Counter()
        received = []
        for record, raw in decoded:
            if isinstance(raw, Poison):
                dead_letter = dead_letter_record(record, "decode", raw, self._topics, number, now)
                received.append(ReceivedAlert(record, Classification.DEAD_LETTER, raw.message, dead_letter=dead_letter))
                continue
            alert = enrich(raw, record, now)
            if alert.id in known:
                received.append(ReceivedAlert(record, Classification.DUPLICATE, DUPLICATE, alert))
                continue
            known.add(alert.id)
            new[alert.detector] += 1
            if reason := rate_limit(alert.detector, new[alert.detector], left[alert.detector]):
                received.append(ReceivedAlert(record, Classification.RATE_LIMITED, reason, alert))
            else:
                received.append(ReceivedAlert(record, Classification.ACCEPTED, NEW, alert))
        return received

    def _decode(self, record: ReceivedRecord) -> dict[str, Any] | Poison:
        try:
            alert = self._codec.decode(record.value)
        except UnknownSchema as error:
            if error.id in self._asked:
                return error
            self._asked.add(error.id)
            for schema in self._learn():
                self._codec.learn(schema)
            return self._decode(record)
        except DecodeError as error:
            return error
        if wrong := [name for name in STORED if "\0" in alert[name]]:
            return DecodeError(f"reading {record.topic}: {', '.join(wrong)} of the alert has a NUL")
        if not alert["alert_id"]:
            return DecodeError(f"reading {record.topic}: the alert has no alert_id")
        if (size := len(alert["alert_id"])) > MAX_ID:
            return DecodeError(
                f"reading {record.topic}: the alert_id has {size} characters, at most {MAX_ID} are taken"
            )
        if alert["detector"] != detector_of(self._topics, record.topic):
            return DecodeError(f"reading {record.topic}: the alert says it is from detector {alert['detector']!r}")
        return alert


def enrich(raw: Mapping[str, Any], record: ReceivedRecord, now: float) -> PublishedAlert:
    """The alert with its labels, a text for people, and its trace."""
    entity = raw["entity"]
    carried = dict(record.headers).get(headers.TRACEPARENT)
    return PublishedAlert(
        id=raw["alert_id"],
        detector=raw["detector"],
        release=raw["release"],
        entity_type=entity["type"],
        entity_id=entity["id"],
        severity=shortened(" ".join(readable(raw["severity"]).split()), MAX_SEVERITY),
        score=score(raw["score"]),
        title=title(raw),
        text=text(raw),
        event_time=raw["event_time"],
        detected_at=raw["detected_at"].timestamp(),
        received_at=now,
        traceparent=carried.decode("latin-1")
        if carried
        else headers.derived_traceparent(record.topic, record.partition, record.offset),
        labels=labels_of(raw),
    )


def rate_limit(detector: str, number: int, remaining: int) -> str:
    """Why the `number`th new alert of a detector in a batch is rate-limited, with `remaining` allowed; "" if not."""
    return f"{detector} exceeds its rate limit" if number > remaining else ""


def text(raw: Mapping[str, Any]) -> str:
    """The reason and its evidence, for a person. It is bounded and says what is missing."""
    evidence = raw["evidence"]
    facts = [f"{name}: {value}" for name, value in sorted(evidence["values"].items())]
    facts += [f"event {event_id}" for event_id in evidence["event_ids"]]
    if len(facts) > MAX_EVIDENCE:
        facts[MAX_EVIDENCE:] = [f"and {len(facts) - MAX_EVIDENCE} more"]
    lines = "\n".join([raw["reason"], *(f"- {fact}" for fact in facts)])
    return shortened(readable(lines), MAX_TEXT)


def score(given: float) -> float:
    """A score from 0 to 1; 0 for one that is no number, which the store's JSON cannot have."""
    return 0.0 if math.isnan(given) else min(max(given, 0.0), 1.0)


def title(raw: Mapping[str, Any]) -> str:
    """The title, bounded; of an alert whose title is blank the name of its detector, since receivers refuse none."""
    return raw["detector"] if is_blank(raw["title"]) else shortened(readable(raw["title"]), MAX_TITLE)

"""What becomes of each record that arrives: decode, dedup, enrich, throttle. Pure, but for schemas that are new.

A record becomes an accepted alert, a repeat of one, a parked one of a detector that raises too much, or a
dead letter; each with a reason.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lozenge.contracts import headers
from lozenge.contracts.avro import Codec, UnknownSchema
from lozenge.contracts.schemas import Schema
from lozenge.contracts.topics import Topics
from lozenge.errors import DecodeError, Poison
from lozenge_downstream.dead_letter_encoder import dead_letter
from lozenge_downstream.model import Alert, Arrival, Number, Outcome, Record, labels_of

MAX_TEXT = 4000
MAX_EVIDENCE = 12
FIRST = "first alert with this id"
REPEAT = "an alert with this id came before"


class Decoded(NamedTuple):
    """A record and its alert, or what keeps it from being one."""

    record: Record
    alert: dict[str, Any] | Poison


class Arriving:
    """The stages with what they need all day: the codec, and the ids of schemas that were asked for."""

    def __init__(self, topics: Topics, learn: Callable[[], Iterable[Schema]] = tuple) -> None:
        """`learn` is asked once for every schema id that no packaged schema has."""
        self._topics, self._learn = topics, learn
        self._asked: set[int] = set()
        self._codec = Codec.of("alert")

    def decode(self, records: Iterable[Record]) -> list[Decoded]:
        """Each record with its alert, or with what keeps it from being one."""
        return [Decoded(record, self._decode(record)) for record in records]

    def judge(
        self,
        decoded: Sequence[Decoded],
        *,
        seen: Callable[[Sequence[str]], set[str]],
        room: Callable[[Sequence[str]], Mapping[str, int]],
        number: Number,
        now: float,
    ) -> list[Arrival]:
        """What becomes of a batch; `seen` tells which ids came before, `room` how much more detectors may raise."""
        known = set(seen([alert["alert_id"] for _, alert in decoded if not isinstance(alert, Poison)]))
        left = dict(room(sorted({alert["detector"] for _, alert in decoded if not isinstance(alert, Poison)})))
        raised: Counter[str] = Counter()
        arrivals = []
        for record, raw in decoded:
            if isinstance(raw, Poison):
                letter = dead_letter(record, "decode", raw, self._topics, number, now)
                arrivals.append(Arrival(record, Outcome.DEAD_LETTER, raw.message, letter=letter))
                continue
            alert = enrich(raw, record, now)
            if alert.id in known:
                arrivals.append(Arrival(record, Outcome.REPEATED, REPEAT, alert))
                continue
            known.add(alert.id)
            raised[alert.detector] += 1
            if reason := throttle(alert.detector, raised[alert.detector], left[alert.detector]):
                arrivals.append(Arrival(record, Outcome.PARKED, reason, alert))
            else:
                arrivals.append(Arrival(record, Outcome.ACCEPTED, FIRST, alert))
        return arrivals

    def _decode(self, record: Record) -> dict[str, Any] | Poison:
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
        if alert["detector"] != self._topics.detector_of(record.topic):
            return DecodeError(f"reading {record.topic}: the alert says it is from detector {alert['detector']!r}")
        return alert


def enrich(raw: Mapping[str, Any], record: Record, now: float) -> Alert:
    """The alert with the labels that it is routed by; the detector's own cannot hide the platform's."""
    entity = raw["entity"]
    carried = dict(record.headers).get(headers.TRACEPARENT)
    return Alert(
        id=raw["alert_id"],
        detector=raw["detector"],
        release=raw["release"],
        entity_type=entity["type"],
        entity_id=entity["id"],
        severity=raw["severity"],
        score=raw["score"],
        title=raw["title"],
        text=text(raw),
        event_time=raw["event_time"],
        detected_at=raw["detected_at"].timestamp(),
        received_at=now,
        traceparent=carried.decode("latin-1")
        if carried
        else headers.derived_traceparent(record.topic, record.partition, record.offset),
        labels=labels_of(raw),
    )


def throttle(detector: str, number: int, left: int) -> str:
    """Why a detector's alert is parked that is its `number`th of a batch, where it may raise `left` more; "" if not."""
    return f"{detector} raises more than it may" if number > left else ""


def text(raw: Mapping[str, Any]) -> str:
    """The reason and what it rests on, for a person; bounded, and it says what it left out."""
    evidence = raw["evidence"]
    facts = [f"{name}: {value}" for name, value in sorted(evidence["values"].items())]
    facts += [f"event {event_id}" for event_id in evidence["event_ids"]]
    if len(facts) > MAX_EVIDENCE:
        facts[MAX_EVIDENCE:] = [f"and {len(facts) - MAX_EVIDENCE} more"]
    lines = "\n".join([raw["reason"], *(f"- {fact}" for fact in facts)])
    return lines if len(lines) <= MAX_TEXT else lines[:MAX_TEXT] + " ..."

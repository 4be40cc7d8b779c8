"""What the notifier does with alerts, stage by stage, in the order in which `run` calls them.

Every stage is a pure function: the clock, the memory of earlier alerts and the next sequence number
come in as arguments. Each decision carries a named reason, which the store keeps.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from lozenge import headers, topics
from lozenge.avro import Codec, UnknownSchema
from lozenge.errors import DecodeError, Poison
from lozenge.ids import uuid5
from lozenge.partitions import partition_of
from lozenge.schemas import Schema
from lozenge_downstream.config import SEVERITIES, Route
from lozenge_downstream.model import Decision, Message, Number, Outcome, Outgoing, Reason, Record

APP = "downstream"
TYPE = "lozenge.notification"
DEAD_LETTERS = topics.dead_letters(APP)
MAX_TEXT = 8000
MAX_EVIDENCE = 12

Alert = Mapping[str, Any]


class Pipeline:
    """The stages with what they need all day: codecs, routes and the partition counts of the outputs."""

    def __init__(self, routes: Sequence[Route], learn: Callable[[], Iterable[Schema]] = tuple) -> None:
        """`learn` is asked once for every schema id that no packaged schema has."""
        self._routes = routes
        self._learn = learn
        self._asked: set[int] = set()
        self._alerts = Codec.of("alert")
        self._notifications = Codec.of("notification")
        self._partitions = {t.name: t.partitions for t in topics.platform_topics()}

    def run(
        self, records: Iterable[Record], *, seen: Callable[[Sequence[str]], set[str]], number: Number, now: datetime
    ) -> list[Decision]:
        """Decides a batch: decode, dedup, decide, route, render. Recording is the caller's transaction.

        `seen` tells which alert ids were decided in earlier batches.
        """
        decoded = [(record, self._decode(record)) for record in records]
        known = set(seen([alert["alert_id"] for _, alert in decoded if not isinstance(alert, Poison)]))
        decisions = []
        for record, alert in decoded:
            if isinstance(alert, Poison):
                decisions.append(self._refuse(record, alert, number, now))
                continue
            reason = dedup(alert, known)
            if decide(reason) is Outcome.COLLAPSED:
                decisions.append(Decision(record, Outcome.COLLAPSED, reason, alert["alert_id"]))
                continue
            known.add(alert["alert_id"])
            matched = route(alert, self._routes)
            decisions.append(self._render(record, alert, reason, matched, number, now))
        return decisions

    def _decode(self, record: Record) -> Alert | Poison:
        try:
            alert = self._alerts.decode(record.value)
        except UnknownSchema as error:
            if error.id in self._asked:
                return error
            self._asked.add(error.id)
            for schema in self._learn():
                self._alerts.learn(schema)
            return self._decode(record)
        except DecodeError as error:
            return error
        if alert["detector"] != topics.detector_of(record.topic):
            return DecodeError(f"reading {record.topic}: the alert says it is from detector {alert['detector']!r}")
        return alert

    def _render(
        self, record: Record, alert: Alert, reason: Reason, matched: Sequence[Route], number: Number, now: datetime
    ) -> Decision:
        entity = alert["entity"]
        subject = f"{entity['type']}:{entity['id']}"
        partition = partition_of(subject.encode(), self._partitions[topics.NOTIFICATIONS])
        fields = notification(alert, matched, number(topics.NOTIFICATIONS, partition), now)
        carried = dict(record.headers).get(headers.TRACEPARENT)
        trace = (
            carried.decode("latin-1")
            if carried
            else headers.derived_traceparent(record.topic, record.partition, record.offset)
        )
        detected_at = alert["detected_at"].timestamp()
        outgoing = Outgoing(
            topics.NOTIFICATIONS,
            partition,
            fields["seq"],
            fields["notification_id"],
            subject.encode(),
            self._notifications.encode(fields),
            headers.cloud_event(
                id=fields["notification_id"],
                source=f"/{APP}",
                type=f"{TYPE}.v1",
                subject=subject,
                time=fields["event_time"],
                traceparent=trace,
            ),
            detected_at,
        )
        body = webhook_body(fields, alert)
        # A webhook that several routes name still gets the notification once.
        webhooks = dict.fromkeys(name for r in matched for name in r.webhooks)
        messages = tuple(Message(name, outgoing.id, body, detected_at) for name in webhooks)
        return Decision(record, Outcome.NOTIFIED, reason, alert["alert_id"], outgoing.id, outgoing, messages)

    def _refuse(self, record: Record, error: Poison, number: Number, now: datetime) -> Decision:
        outgoing = dead_letter(record, "decode", error, number, now)
        return Decision(record, Outcome.DEAD_LETTER, error.message, outgoing=outgoing)


def dedup(alert: Alert, known: set[str]) -> Reason:
    """Whether this alert was decided before; the id is the same after any replay of the detector."""
    return Reason.REPEAT if alert["alert_id"] in known else Reason.FIRST


def decide(reason: Reason) -> Outcome:
    """What follows from the reason."""
    return Outcome.COLLAPSED if reason is Reason.REPEAT else Outcome.NOTIFIED


def route(alert: Alert, routes: Iterable[Route]) -> list[Route]:
    """Every route that takes the alert. A severity nobody knows passes every limit: better told than lost."""
    rank = SEVERITIES.index(alert["severity"]) if alert["severity"] in SEVERITIES else len(SEVERITIES)
    return [
        r
        for r in routes
        if (r.detectors is None or alert["detector"] in r.detectors)
        and (r.severity is None or rank >= SEVERITIES.index(r.severity))
    ]


def notification(alert: Alert, matched: Iterable[Route], seq: int, now: datetime) -> dict[str, Any]:
    """The Avro fields of the notification that opens the case of one alert (a case is one alert for now)."""
    entity = alert["entity"]
    case_id = uuid5("case", alert["detector"], entity["type"], entity["id"], alert["alert_id"])
    alert_ids = [alert["alert_id"]]
    return {
        "notification_id": uuid5("notification", case_id, "opened", *alert_ids),
        "seq": seq,
        "status": "opened",
        "case_id": case_id,
        "alert_ids": alert_ids,
        "severity": alert["severity"],
        "title": alert["title"],
        "text": text(alert),
        "routes": [r.name for r in matched],
        "event_time": alert["event_time"],
        "created_at": now,
    }


def text(alert: Alert) -> str:
    """The reason and what it rests on, for a person; bounded, and it says what it left out."""
    evidence = alert["evidence"]
    facts = [f"{name}: {value}" for name, value in sorted(evidence["values"].items())]
    facts += [f"event {event_id}" for event_id in evidence["event_ids"]]
    if len(facts) > MAX_EVIDENCE:
        facts[MAX_EVIDENCE:] = [f"and {len(facts) - MAX_EVIDENCE} more"]
    lines = "\n".join([alert["reason"], *(f"- {fact}" for fact in facts)])
    return lines if len(lines) <= MAX_TEXT else lines[:MAX_TEXT] + " ..."


def webhook_body(fields: Mapping[str, Any], alert: Alert) -> str:
    """The JSON text of a webhook: the notification, its detector and its entity (Standard Webhooks layout)."""
    data = {**fields, "detector": alert["detector"], "entity": alert["entity"]}
    document = {"type": f"{TYPE}.{fields['status']}", "timestamp": fields["created_at"], "data": data}
    return msgspec.json.encode(document).decode()


def dead_letter(record: Record, stage: str, error: Exception, number: Number, now: datetime) -> Outgoing:
    """`record` byte for byte with the reason in its headers, for the notifier's dead-letter topic."""
    partitions = next(t.partitions for t in topics.platform_topics() if t.name == DEAD_LETTERS)
    partition = partition_of(record.key or b"", partitions)
    explained = headers.dead_letter(
        record.headers,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        app=APP,
        stage=stage,
        error=error,
        failed_at=now,
    )
    seq = number(DEAD_LETTERS, partition)
    return Outgoing(
        DEAD_LETTERS,
        partition,
        seq,
        f"{stage} {record.topic}/{record.partition}/{record.offset}",
        record.key,
        record.value,
        explained,
    )

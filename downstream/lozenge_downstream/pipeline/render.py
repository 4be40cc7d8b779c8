"""Notifications as their consumers get them: an Avro record for Kafka, and the JSON text for channels."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from lozenge.apps import DOWNSTREAM
from lozenge.contracts import headers
from lozenge.contracts.avro import Codec
from lozenge.contracts.display_text import shortened, shown, shown_data
from lozenge.contracts.ids import uuid5
from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.topics import Topics
from lozenge_downstream.model import Case, Number, Outgoing, PublishedAlert, RoutingSource, Status
from lozenge_downstream.pipeline.notify_policy import resolves_at
from lozenge_downstream.routing.tree import Route

TYPE = "lozenge.notification"
ROUTING = "lozenge-routing"
"""Header with the version of the routing file."""
MAX_SUBJECT = 500
MAX_TITLE = 1000
MAX_LABEL = 1000
MAX_TEXT = 8000
MAX_ALERTS = 20
"""Alerts in the text and body of a notification; `alert_ids` has all."""


class Renderer:
    """Renders with the schema and the partitions of notifications; `link` makes the URL of an alert's feedback page."""

    def __init__(self, topics: Topics, link: Callable[[str], str] | None = None) -> None:
        self._topics, self._link = topics, link
        self._codec = Codec.of("notification")

    def __call__(
        self,
        case: Case,
        route: Route,
        status: Status,
        notified: Sequence[PublishedAlert],
        latest: PublishedAlert,
        number: Number,
        now: float,
        *,
        source: RoutingSource,
    ) -> Outgoing:
        """The notification, by the routing of `source`. Without new alerts, `latest` represents the case."""
        shown = notified or [latest]
        key = subject(case, shown)
        partition = partition_of(key.encode(), self._topics.partitions)
        seq = number(self._topics.notifications, partition)
        fields = fields_of(case, status, notified, latest, seq, now)
        id = fields["notification_id"]
        trace = shown[0].traceparent
        sent = headers.cloud_event(
            id=id,
            source=f"/{DOWNSTREAM}",
            type=f"{TYPE}.v1",
            subject=key,
            time=fields["event_time"],
            traceparent=trace,
        )
        detected_at = min(a.detected_at for a in notified) if notified else None
        if source.version:
            sent.append((ROUTING, source.version.encode()))
        body = document(fields, case, route, key, shown, source, self._link)
        value = self._codec.encode(fields)
        return Outgoing(
            self._topics.notifications, partition, seq, id, key.encode(), value, sent, detected_at, case.id, body
        )


def subject(case: Case, alerts: Sequence[PublishedAlert]) -> str:
    """The subject of a case: the entity if all its alerts share one, else the labels of its group. It is bounded.

    A case of all alerts of a route has no such labels: its subject is the route.
    """
    if "alert_id" in case.group or case.group.get("entity"):
        return shortened(alerts[0].subject, MAX_SUBJECT)
    labels = case.group or {"route": case.route}
    return shortened(",".join(f"{name}={value}" for name, value in sorted(labels.items())), MAX_SUBJECT)


def fields_of(
    case: Case, status: Status, notified: Sequence[PublishedAlert], latest: PublishedAlert, seq: int, now: float
) -> dict[str, Any]:
    """The fields of the Avro record."""
    shown = notified or [latest]
    worst = max(shown, key=lambda alert: alert.score)
    alert_ids = [alert.id for alert in notified]
    return {
        "notification_id": uuid5("notification", case.id, status, str(case.notification_count), *alert_ids),
        "seq": seq,
        "status": status.value,
        "case_id": case.id,
        "alert_ids": alert_ids,
        "severity": case.severity,
        "title": title(case, worst),
        "text": text(shown),
        "routes": [case.route],
        "event_time": max(alert.event_time for alert in shown),
        "created_at": datetime.fromtimestamp(now, UTC),
        "score": case.score,
        "detectors": sorted(case.scores),
    }


def title(case: Case, worst: PublishedAlert) -> str:
    """One line: the title of the alert with the highest score, and the other detectors of the case."""
    others = sorted(case.scores.keys() - {worst.detector})
    first = shown(worst.title)
    return shortened(f"{first}; also {', '.join(others)}", MAX_TITLE) if others else first


def text(alerts: Sequence[PublishedAlert]) -> str:
    """The texts of the alerts, for a person. It is bounded and says how many are missing."""
    parts = [alert.text for alert in alerts[:MAX_ALERTS]]
    if len(alerts) > MAX_ALERTS:
        parts.append(f"... and {len(alerts) - MAX_ALERTS} more alerts")
    whole = shown("\n\n".join(parts))
    return shortened(whole, MAX_TEXT)


def _bounded(labels: Mapping[str, str]) -> dict[str, str]:
    """Labels as receivers get them; routes, silences and inhibitions see the whole ones."""
    return {name: shortened(value, MAX_LABEL) for name, value in labels.items()}


def document(
    fields: dict[str, Any],
    case: Case,
    route: Route,
    key: str,
    alerts: Sequence[PublishedAlert],
    source: RoutingSource,
    link: Callable[[str], str] | None = None,
) -> str:
    """The JSON text for channels (Standard Webhooks layout): the fields of the record, and of each alert."""
    data = {
        **fields,
        "subject": key,
        "group": _bounded(case.group),
        "routing": source.version,
        "detector": alerts[0].detector,
        "entity": {"type": alerts[0].entity_type, "id": shortened(alerts[0].entity_id, MAX_LABEL)},
        "alerts": [
            {
                "alert_id": a.id,
                "title": a.title,
                "reason": a.text,
                "score": a.score,
                "labels": _bounded(a.labels),
                "event_time": a.event_time,
                "resolves_at": datetime.fromtimestamp(resolves_at(route, a), UTC),
                **({"feedback_url": link(a.id)} if link else {}),
            }
            for a in alerts[:MAX_ALERTS]
        ],
    }
    envelope = {"type": f"{TYPE}.{fields['status']}", "timestamp": fields["created_at"], "data": data}
    return msgspec.json.encode(shown_data(envelope)).decode()

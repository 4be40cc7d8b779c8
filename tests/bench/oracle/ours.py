"""The script through our stages, over a real store, on a clock that is moved second by second."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from lozenge.contracts.avro import Codec
from lozenge_downstream.model import ReceivedRecord
from lozenge_downstream.routing.matchers import parse
from tests.bench.oracle.notifications import AlertGroup, Here, group_of
from tests.bench.oracle.routes import ours
from tests.bench.oracle.script import END, FOREVER, SILENCES, WAVES, Given, alerts
from tests.downstream.conftest import Desk

Routes = dict[str, set[AlertGroup]]
"""The groups of each alert."""


def through_ours(folder: Path, start: float) -> list[Here]:
    """The notifications of our stages; times are seconds after `start`."""
    desk = Desk(f"sqlite:///{folder / 'store.db'}")
    desk.pipeline.routing = ours(start)
    by_hand: dict[int, list[str]] = {}
    for at in range(END):
        desk.now = start + at
        with desk.store.transaction() as t:
            for id in by_hand.pop(at, ()):
                assert t.silences.expire(id)
            for s in (s for s in SILENCES if s.made == at):
                until = start + (FOREVER if s.ends_by_hand else s.ends)
                made = t.silences.add([parse(m) for m in s.matchers], "oracle", "compared", until, start + s.starts)
                if s.ends_by_hand:
                    by_hand.setdefault(s.ends, []).append(made.id)
        if at in WAVES:
            desk.take(*records(at, start))
        while desk.later(0):
            pass
    notifications = _notifications(desk, start)
    desk.store.close()
    return notifications


def records(at: int, start: float) -> Sequence[ReceivedRecord]:
    """The wave that comes at `at`."""
    codec = Codec.of("alert")
    return [_record(codec, n, alert, start) for n, alert in enumerate(alerts()) if alert.at == at]


def routes_of(start: float) -> Routes:
    """The groups of each alert, by our routing file."""
    root = ours(start).route
    return {
        alert.id: {group_of(r.channels[0], r.group_of(alert.id, alert.labels)) for r in root.taking(alert.labels)}
        for alert in alerts()
    }


def _notifications(desk: Desk, start: float) -> list[Here]:
    channels = {placed.route.name: placed.route.channels[0] for placed in desk.pipeline.routing.route.walk()}
    return [
        Here(
            datetime.fromisoformat(n["created_at"]).timestamp() - start,
            group_of(channels[n["routes"][0]], n["group"]),
            n["status"],
            frozenset(n["alert_ids"]),
        )
        for n in desk.notifications()
    ]


def _record(codec: Codec, number: int, given: Given, start: float) -> ReceivedRecord:
    moment = datetime.fromtimestamp(start + given.at, UTC)
    labels = given.labels
    type, _, id = labels["entity"].partition(":")
    alert = {
        "alert_id": given.id,
        "detector": labels["detector"],
        "release": "r1",
        "settings_digest": "d1",
        "entity": {"type": type, "id": id},
        "severity": labels["severity"],
        "score": 0.5,
        "title": "Oracle",
        "reason": "compared",
        "evidence": {"event_ids": [], "values": {}},
        "event_time": moment,
        "detected_at": moment,
        "labels": {},
    }
    return ReceivedRecord(f"pay.alerts.{labels['detector']}.v1", 0, number, id.encode(), codec.encode(alert), [])

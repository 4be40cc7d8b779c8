"""Alerts become cases, and cases become notifications and deliveries."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sql

from lozenge.contracts.avro import Codec
from lozenge.contracts.headers import TRACEPARENT
from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.topics import Topics
from lozenge_downstream.model import ReceivedRecord
from lozenge_downstream.pipeline import notify_policy
from lozenge_downstream.store import tables
from tests.downstream.conftest import Desk
from tests.downstream.pipeline.cases import statuses, take_one_and_silence_the_next

TOPICS = Topics()
MakeRecord = Callable[..., ReceivedRecord]
BY_CARD = {"group_by": ["entity"], "group_interval": "5m", "resolve_timeout": "1h"}


def test_without_a_routing_file_each_alert_is_notified_alone_at_once(desk: Desk, record: MakeRecord) -> None:
    (received,) = desk.take(record())
    with desk.store.reading() as t:
        (sent,) = t.outbox.pending(10)
    assert (sent.topic, sent.key, sent.seq) == (TOPICS.notifications, b"card:card-7", 0)
    assert sent.partition == partition_of(b"card:card-7", TOPICS.partitions)
    headers = dict(sent.headers)
    assert headers["ce_type"] == b"lozenge.notification.v1"
    assert headers["ce_id"] == sent.id.encode()
    assert headers[TRACEPARENT]
    notification = Codec.of("notification").decode(sent.value)
    assert received.alert is not None
    assert (notification["status"], notification["routes"], notification["alert_ids"]) == (
        "opened",
        ["default"],
        [received.alert.id],
    )
    assert (notification["score"], notification["detectors"], notification["severity"]) == (
        0.9,
        ["large_amount"],
        "high",
    )
    assert desk.later(7200) == 0, "the case is closed: nothing can come of it any more"


def test_the_longest_times_that_a_route_may_have_are_in_every_calendar(desk: Desk, record: MakeRecord) -> None:
    times = ("group_wait", "group_interval", "repeat_interval", "resolve_timeout")
    desk.routing(route=dict.fromkeys(times, "36500d") | {"group_by": ["entity"]})
    desk.take(record())
    assert desk.later(36_500 * 86_400) == 1
    (notification,) = desk.notifications()
    assert notification["alerts"][0]["resolves_at"].startswith("2126-")


def test_a_case_of_all_alerts_of_a_route_is_about_the_route(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route={"group_by": [], "group_interval": "1s"})
    for number in range(3):
        desk.take(record(number, entity={"type": "card", "id": f"card-{number}"}))
        desk.later(5)
    with desk.store.reading() as t:
        sent = t.outbox.pending(10)
    assert [each.key for each in sent] == [b"route=default"] * 3, "one key, so one partition: their order is kept"
    assert {each["case_id"] for each in desk.notifications()} == {desk.notifications()[0]["case_id"]}


def test_channels_get_the_same_fields_as_kafka(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route={"channels": ["ops", "chat"]})
    desk.take(record())
    (notification,) = desk.notifications()
    assert notification["entity"] == {"type": "card", "id": "card-7"}
    assert (notification["detector"], notification["seq"], notification["subject"]) == (
        "large_amount",
        0,
        "card:card-7",
    )
    assert desk.deliveries() == [("ops", "due"), ("chat", "due")]


def test_ids_are_the_same_on_every_run(tmp_path: Any, record: MakeRecord) -> None:
    desks = [Desk(f"sqlite:///{tmp_path / name}") for name in ("one.db", "two.db")]
    for desk in desks:
        desk.take(record())
        desk.store.close()
    assert desks[0].notifications() == desks[1].notifications()


def test_a_repeated_alert_is_not_notified_again(desk: Desk, record: MakeRecord) -> None:
    desk.take(record(1))
    desk.take(record(1))
    assert len(desk.notifications()) == 1


def test_alerts_of_several_detectors_about_one_card_are_one_case(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD)
    desk.take(record(0, score=0.5, severity="medium"))
    desk.take(record(1, detector="card_velocity", score=0.8, title="Too fast"))
    desk.take(record(2, entity={"type": "card", "id": "card-8"}))
    assert statuses(desk) == ["opened", "opened"], "the second alert of card 7 waits for the interval"
    desk.later(299)
    assert len(desk.notifications()) == 2
    desk.later(1)
    first, _, update = desk.notifications()
    assert (update["status"], update["case_id"]) == ("updated", first["case_id"])
    assert (update["severity"], update["detectors"]) == ("high", ["card_velocity", "large_amount"])
    assert update["score"] == pytest.approx(0.9)
    assert update["title"] == "Too fast; also large_amount"
    assert len(update["alert_ids"]) == 1


def test_group_wait_gathers_the_first_alerts(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD | {"group_wait": "30s"})
    desk.take(record(0))
    desk.later(20)
    desk.take(record(1))
    assert desk.notifications() == []
    desk.later(10)
    (notification,) = desk.notifications()
    assert len(notification["alert_ids"]) == 2


def test_an_idle_case_notifies_a_new_alert_at_once(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD)
    desk.take(record(0))
    desk.later(400)
    desk.take(record(1))
    assert statuses(desk) == ["opened", "updated"]


def test_a_case_is_over_with_its_last_alert_and_the_next_one_opens_another(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD | {"send_resolved": True})
    desk.take(record(0))
    desk.later(1800)
    desk.take(record(1))
    desk.later(1800)
    assert statuses(desk) == ["opened", "updated"]
    desk.later(1800)
    desk.take(record(2))
    notifications = desk.notifications()
    assert [t["status"] for t in notifications] == ["opened", "updated", "resolved", "opened"]
    assert notifications[2]["case_id"] == notifications[0]["case_id"] != notifications[3]["case_id"]
    assert notifications[2]["alert_ids"] == []


def test_a_case_is_repeated_while_it_lasts(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD | {"repeat_interval": "20m"})
    desk.take(record(0))
    for _ in range(5):
        desk.later(1200)
    assert statuses(desk) == ["opened", "updated", "updated"]
    assert len({n["notification_id"] for n in desk.notifications()}) == 3


def test_new_alerts_wait_for_their_time_although_the_case_would_end_before(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD | {"repeat_interval": "58m"})
    desk.take(record(0))
    desk.later(3480)
    desk.now += 20
    desk.take(record(1))
    desk.later(100)
    assert statuses(desk) == ["opened", "updated"], "that was the repeat"
    desk.later(180)
    assert statuses(desk) == ["opened", "updated", "updated"]


def test_the_end_of_a_case_is_notified_although_it_ended_before_it_was_opened(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD | {"group_wait": "1m", "send_resolved": True})
    desk.take(record(0))
    desk.later(3600)
    assert statuses(desk) == ["opened"], "it lasted for as long as the notifier was away"
    desk.later(1)
    assert statuses(desk) == ["opened", "resolved"]
    assert desk.later(3600) == 0


def test_a_longer_resolve_timeout_does_not_end_a_case_repeatedly(desk: Desk, record: MakeRecord) -> None:
    take_one_and_silence_the_next(desk, record)
    desk.later(3000)
    desk.routing(route=BY_CARD | {"send_resolved": True, "resolve_timeout": "2h"})
    desk.later(1000)
    assert sum(desk.later(1) for _ in range(20)) == 0, "it is looked at again later, not again and again"
    for _ in range(20):
        desk.later(300)
    assert statuses(desk) == ["opened", "resolved"]


def test_a_case_of_very_many_alerts_is_notified_in_parts(
    desk: Desk, record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify_policy, "MAX_NOTIFIED", 3)
    desk.routing(route=BY_CARD | {"group_wait": "1m"})
    desk.take(*(record(n) for n in range(7)))
    for _ in range(4):
        desk.later(60)
    notifications = desk.notifications()
    assert [len(t["alert_ids"]) for t in notifications] == [3, 3, 1]
    assert len({id for t in notifications for id in t["alert_ids"]}) == 7


def test_an_alert_that_two_routes_take_is_a_case_of_each(desk: Desk, record: MakeRecord) -> None:
    audit = {"name": "audit", "channels": ["archive"], "continue": True}
    urgent = {"name": "urgent", "matchers": ["severity >= high"], "channels": ["oncall"]}
    desk.routing(route={"channels": ["ops"], "routes": [audit, urgent]})
    desk.take(record())
    assert [n["routes"] for n in desk.notifications()] == [["audit"], ["urgent"]]
    assert [channel for channel, _ in desk.deliveries()] == ["archive", "oncall"]


def test_a_case_whose_route_is_gone_is_notified_by_the_root(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route={"channels": ["ops"], "routes": [BY_CARD | {"name": "cards", "group_wait": "1m"}]})
    desk.take(record())
    desk.routing(route={"channels": ["ops"]})
    desk.later(60)
    assert [channel for channel, _ in desk.deliveries()] == ["ops"]


CHANNELS = {name: {"type": "kafka", "topic": name} for name in ("ops", "oncall", "chat")}


def of_each(desk: Desk, status: str) -> list[str]:
    """The channels that received this status."""
    with desk.store.reading() as t:
        query = sql.select(tables.deliveries.c.channel, tables.outbox.c.body).join(
            tables.outbox, tables.outbox.c.id == tables.deliveries.c.notification_id
        )
        rows = t._connection.execute(query).all()
    return sorted(row.channel for row in rows if json.loads(row.body)["data"]["status"] == status)


@pytest.mark.parametrize("below", [[], [BY_CARD | {"name": "new", "channels": ["chat"]}]], ids=["removed", "renamed"])
def test_the_end_of_a_case_whose_route_is_gone_goes_to_the_channels_that_it_was_notified_to(
    desk: Desk, record: MakeRecord, below: list[Any]
) -> None:
    route = BY_CARD | {"name": "cards", "channels": ["oncall", "chat"], "send_resolved": True}
    desk.routing(channels=CHANNELS, route={"channels": ["ops"], "routes": [route]})
    desk.take(record())
    left = {name: channel for name, channel in CHANNELS.items() if name != "chat" or below}
    desk.routing(channels=left, route={"channels": ["ops"], "routes": below})
    for _ in range(3):
        desk.later(3600)
    assert statuses(desk) == ["opened", "resolved"]
    assert of_each(desk, "resolved") == (["chat", "oncall"] if below else ["oncall"]), "and to no channel that is gone"
    assert desk.notifications()[1]["case_id"] == desk.notifications()[0]["case_id"]


def test_new_alerts_of_a_case_whose_route_is_gone_go_to_the_root_and_its_end_to_all(
    desk: Desk, record: MakeRecord
) -> None:
    route = BY_CARD | {"name": "cards", "channels": ["oncall"], "send_resolved": True}
    desk.routing(channels=CHANNELS, route={"channels": ["ops"], "routes": [route]})
    desk.take(record(0))
    desk.take(record(1))
    desk.routing(channels=CHANNELS, route={"channels": ["ops"]})
    desk.later(300)
    desk.later(3600)
    assert statuses(desk) == ["opened", "updated", "resolved"]
    assert of_each(desk, "updated") == ["ops"]
    assert of_each(desk, "resolved") == ["oncall", "ops"]


def test_the_end_of_a_case_goes_to_its_first_channels_although_its_route_has_others_now(
    desk: Desk, record: MakeRecord
) -> None:
    route = BY_CARD | {"send_resolved": True}
    desk.routing(channels=CHANNELS, route=route | {"channels": ["oncall"]})
    desk.take(record())
    desk.routing(channels=CHANNELS, route=route | {"channels": ["ops"]})
    desk.later(3600)
    assert of_each(desk, "resolved") == ["oncall", "ops"]


def test_a_flood_is_rate_limited_and_can_be_released_or_dropped(desk: Desk, record: MakeRecord) -> None:
    from lozenge_downstream.model import Classification

    desk.routing(rate_limit={"alerts": 2, "within": "1m"})
    desk.take(*(record(n) for n in range(5)))
    assert len(of_large_amount(desk)) == 2
    with desk.store.transaction(exclusive=True) as t:
        assert t.received_alerts.rate_limited() == {"large_amount": 3}
        desk.pipeline.process(
            t.received_alerts.take_rate_limited("large_amount", Classification.ACCEPTED, "released by ann", 2), t
        )
        assert (
            len(t.received_alerts.take_rate_limited("large_amount", Classification.DROPPED, "dropped by ann", 100)) == 1
        )
        assert t.received_alerts.rate_limited() == {}
        assert t.received_alerts.accepted_within(["large_amount"], 60) == {"large_amount": 2}, (
            "what was released is no new rate_limit"
        )
    assert len(of_large_amount(desk)) == 4


def of_large_amount(desk: Desk) -> list[Any]:
    return [n for n in desk.notifications() if n["detector"] == "large_amount"]

"""Alerts gathered into cases, and what is told of them when: all stages over a real store, on the test's clock."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sql

from lozenge.contracts.avro import Codec
from lozenge.contracts.headers import TRACEPARENT
from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.topics import Topics
from lozenge_downstream.model import Baseline, Record
from lozenge_downstream.pipeline import notify_policy
from lozenge_downstream.pipeline.detector_alarms import silence_alarms
from lozenge_downstream.pipeline.mute import rule_of
from lozenge_downstream.store import tables
from lozenge_downstream.store.silences import Silence
from tests.downstream.conftest import Desk

TOPICS = Topics()

MakeRecord = Callable[..., Record]
BY_CARD = {"group_by": ["entity"], "group_interval": "5m", "resolve_timeout": "1h"}


def statuses(desk: Desk) -> list[str]:
    return [told["status"] for told in desk.told()]


def silence(desk: Desk, *matchers: str, seconds: float = 600) -> Silence:
    from lozenge_downstream.routing.matchers import parse

    with desk.store.transaction() as t:
        return t.silences.add([parse(m) for m in matchers], "ann", "planned works", desk.now + seconds)


def test_without_a_file_each_alert_is_told_by_itself_at_once(desk: Desk, record: MakeRecord) -> None:
    (received,) = desk.take(record())
    with desk.store.reading() as t:
        (sent,) = t.outbox.pending(10)
    assert (sent.topic, sent.key, sent.seq) == (TOPICS.notifications, b"card:card-7", 0)
    assert sent.partition == partition_of(b"card:card-7", TOPICS.partitions)
    headers = dict(sent.headers)
    assert headers["ce_type"] == b"lozenge.notification.v1"
    assert headers["ce_id"] == sent.id.encode()
    assert headers[TRACEPARENT]
    told = Codec.of("notification").decode(sent.value)
    assert received.alert is not None
    assert (told["status"], told["routes"], told["alert_ids"]) == ("opened", ["default"], [received.alert.id])
    assert (told["score"], told["detectors"], told["severity"]) == (0.9, ["large_amount"], "high")
    assert desk.later(7200) == 0, "the case is closed: nothing can come of it any more"


def test_channels_are_told_the_same_as_kafka(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route={"channels": ["ops", "chat"]})
    desk.take(record())
    (told,) = desk.told()
    assert told["entity"] == {"type": "card", "id": "card-7"}
    assert (told["detector"], told["seq"], told["subject"]) == ("large_amount", 0, "card:card-7")
    assert desk.deliveries() == [("ops", "due"), ("chat", "due")]


def test_ids_are_the_same_on_every_run(tmp_path: Any, record: MakeRecord) -> None:
    desks = [Desk(f"sqlite:///{tmp_path / name}") for name in ("one.db", "two.db")]
    for desk in desks:
        desk.take(record())
        desk.store.close()
    assert desks[0].told() == desks[1].told()


def test_a_repeat_is_not_told_again(desk: Desk, record: MakeRecord) -> None:
    desk.take(record(1))
    desk.take(record(1))
    assert len(desk.told()) == 1


def test_alerts_of_several_detectors_about_one_card_are_one_case(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD)
    desk.take(record(0, score=0.5, severity="medium"))
    desk.take(record(1, detector="card_velocity", score=0.8, title="Too fast"))
    desk.take(record(2, entity={"type": "card", "id": "card-8"}))
    assert statuses(desk) == ["opened", "opened"], "the second alert of card 7 waits for the interval"
    desk.later(299)
    assert len(desk.told()) == 2
    desk.later(1)
    first, _, update = desk.told()
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
    assert desk.told() == []
    desk.later(10)
    (told,) = desk.told()
    assert len(told["alert_ids"]) == 2


def test_an_idle_case_tells_something_new_at_once(desk: Desk, record: MakeRecord) -> None:
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
    told = desk.told()
    assert [t["status"] for t in told] == ["opened", "updated", "resolved", "opened"]
    assert told[2]["case_id"] == told[0]["case_id"] != told[3]["case_id"]
    assert told[2]["alert_ids"] == []


def test_a_case_is_repeated_while_it_lasts(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD | {"repeat_interval": "20m"})
    desk.take(record(0))
    for _ in range(5):
        desk.later(1200)
    assert statuses(desk) == ["opened", "updated", "updated"]
    assert len({told["notification_id"] for told in desk.told()}) == 3


def test_a_silence_holds_back_the_repeats_of_a_case_and_not_its_end(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD | {"repeat_interval": "10m", "send_resolved": True})
    desk.take(record(0))
    silence(desk, 'detector = "large_amount"', seconds=1800)
    for _ in range(5):
        desk.later(300)
    assert statuses(desk) == ["opened"]
    assert desk.later(0) == 0, "it is looked at again later, not again and again"
    desk.later(301)
    assert statuses(desk) == ["opened", "updated"]
    silence(desk, 'detector = "large_amount"', seconds=9000)
    for _ in range(10):
        desk.later(600)
    assert statuses(desk) == ["opened", "updated", "resolved"]


def test_a_case_is_repeated_while_any_alert_of_it_that_was_told_lasts_and_is_not_silenced(
    desk: Desk, record: MakeRecord
) -> None:
    desk.routing(route=BY_CARD | {"repeat_interval": "10m", "send_resolved": True})
    desk.take(record(0))
    silence(desk, 'detector = "card_velocity"', seconds=90_000)
    desk.take(record(1, detector="card_velocity", title="Silenced"))
    desk.later(600)
    assert statuses(desk) == ["opened", "updated"], "the silence is not of the alert that was told"
    desk.later(2000)
    desk.take(record(2, detector="card_velocity", title="Silenced"))
    desk.later(1000)
    for _ in range(4):
        desk.later(600)
    assert statuses(desk) == ["opened", "updated", "updated"], "what was told is over, and only silenced alerts last"
    desk.later(600)
    assert statuses(desk) == ["opened", "updated", "updated", "resolved"]
    assert {told["title"] for told in desk.told()} == {"Large amount"}, "nothing is said of silenced alerts"


def take_one_and_silence_the_next(desk: Desk, record: MakeRecord) -> None:
    """A case of two alerts: the first is told, the second is not."""
    desk.routing(route=BY_CARD | {"send_resolved": True})
    desk.take(record(0))
    silence(desk, 'detector = "large_amount"', seconds=90_000)
    desk.take(record(1))


def test_the_end_of_a_case_is_told_once_though_an_alert_in_it_is_silenced(desk: Desk, record: MakeRecord) -> None:
    take_one_and_silence_the_next(desk, record)
    desk.later(10_000)
    for _ in range(5):
        desk.later(300)
    assert statuses(desk) == ["opened", "resolved"]


def test_news_wait_for_their_time_though_without_them_the_case_were_over_before(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD | {"repeat_interval": "58m"})
    desk.take(record(0))
    desk.later(3480)
    desk.now += 20
    desk.take(record(1))
    desk.later(100)
    assert statuses(desk) == ["opened", "updated"], "that was the repeat"
    desk.later(180)
    assert statuses(desk) == ["opened", "updated", "updated"]


def test_the_end_of_a_case_is_told_though_it_was_over_before_it_could_be_opened(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD | {"group_wait": "1m", "send_resolved": True})
    desk.take(record(0))
    desk.later(3600)
    assert statuses(desk) == ["opened"], "it lasted for as long as the notifier was away"
    desk.later(1)
    assert statuses(desk) == ["opened", "resolved"]
    assert desk.later(3600) == 0


def test_a_longer_life_of_alerts_does_not_end_a_case_again_and_again(desk: Desk, record: MakeRecord) -> None:
    take_one_and_silence_the_next(desk, record)
    desk.later(3000)
    desk.routing(route=BY_CARD | {"send_resolved": True, "resolve_timeout": "2h"})
    desk.later(1000)
    assert sum(desk.later(1) for _ in range(20)) == 0, "it is looked at again later, not again and again"
    for _ in range(20):
        desk.later(300)
    assert statuses(desk) == ["opened", "resolved"]


def test_a_case_of_very_many_alerts_is_told_in_parts(
    desk: Desk, record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify_policy, "MAX_NOTIFIED", 3)
    desk.routing(route=BY_CARD | {"group_wait": "1m"})
    desk.take(*(record(n) for n in range(7)))
    for _ in range(4):
        desk.later(60)
    told = desk.told()
    assert [len(t["alert_ids"]) for t in told] == [3, 3, 1]
    assert len({id for t in told for id in t["alert_ids"]}) == 7


def test_a_silenced_alert_is_told_when_the_silence_ends_before_it_is_over(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD)
    silence(desk, 'detector = "large_amount"', seconds=450)
    desk.take(record(0, release="r1"), record(1, release="r2"))
    desk.later(300)
    assert desk.told() == []
    desk.later(300)
    (told,) = desk.told()
    assert len(told["alert_ids"]) == 2


def test_an_alert_that_is_silenced_until_it_is_over_is_never_told(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route={"channels": ["ops"]})
    held = silence(desk, "entity = card:card-7", seconds=4000)
    desk.take(record(0), record(1, entity={"type": "card", "id": "card-8"}))
    for _ in range(20):
        desk.later(300)
    assert len(desk.told()) == 1
    assert "planned works" in str(held)
    assert desk.later(10_000) == 0, "its case is closed"


def test_a_silence_that_only_an_older_release_could_read_silences_nothing(desk: Desk, record: MakeRecord) -> None:
    silence(desk, "detector = large_amount")
    with desk.store.transaction() as t:
        t._connection.execute(tables.silences.update().values(matchers='["detector =~ \\"(?!small)large_amount\\""]'))
    desk.take(record())
    assert statuses(desk) == ["opened"]


def test_a_silence_can_be_ended(desk: Desk, record: MakeRecord) -> None:
    held = silence(desk, "severity >= high")
    desk.take(record(0))
    with desk.store.transaction() as t:
        assert t.silences.expire(held.id)
        assert not t.silences.expire(held.id)
    desk.later(300)
    assert len(desk.told()) == 1


def test_what_nobody_could_look_at_in_time_is_told_all_the_same(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route=BY_CARD | {"group_wait": "30s"})
    desk.take(record(0))
    desk.later(100_000)
    assert len(desk.told()) == 1


INHIBIT = {"source_matchers": ["severity = critical"], "target_matchers": ["severity <= medium"], "equal": ["entity"]}


def test_an_alert_inhibits_those_that_equal_it(desk: Desk, record: MakeRecord) -> None:
    desk.routing(inhibit_rules=[INHIBIT])
    card_8 = {"type": "card", "id": "card-8"}
    desk.take(record(0, severity="low"), record(1, severity="critical"), record(2, severity="high"))
    desk.take(record(3, severity="medium"), record(4, severity="low", entity=card_8))
    assert [told["severity"] for told in desk.told()] == ["critical", "high", "low"]
    desk.later(3700)
    assert len(desk.told()) == 3, "they were over with the one that inhibited them"


def test_a_rule_that_is_new_knows_the_alerts_that_came_before_and_still_last(
    desk: Desk, record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lozenge_downstream.store.received_alerts.PAGE", 2)
    card_8, card_9 = ({"type": "card", "id": name} for name in ("card-8", "card-9"))
    desk.take(record(0, severity="critical", entity=card_8))
    desk.later(3000)
    desk.take(record(1, severity="critical"), record(2, severity="high"), *(record(n) for n in range(3, 7)))
    desk.routing(rate_limit={"alerts": 1})
    desk.take(record(7), record(8, severity="critical", entity=card_9))
    desk.later(1000)
    desk.routing(inhibit_rules=[INHIBIT])
    with desk.store.transaction(exclusive=True) as t:
        desk.pipeline.apply_new_inhibitions(set(), t)
    before = len(desk.told())
    desk.take(*(record(n, severity="low", entity=card) for n, card in ((10, card_8), (11, card_9))))
    assert len(desk.told()) == before + 2, "one alert that would inhibit is over, and one is rate_limited"
    desk.take(record(12, severity="low"))
    assert len(desk.told()) == before + 2
    desk.later(2601)
    assert len(desk.told()) == before + 3, "it inhibits as long as it lasts, and no longer"


def test_a_rule_that_is_known_is_not_worked_out_again(desk: Desk, record: MakeRecord) -> None:
    desk.routing(inhibit_rules=[INHIBIT])
    desk.take(record(0, severity="critical"))
    with desk.store.transaction(exclusive=True) as t:
        assert t.cases.active_rules() == {rule_of(desk.pipeline.routing.inhibit_rules[0])}
        t._connection.execute(tables.inhibitors.delete())
        desk.pipeline.apply_new_inhibitions({rule_of(rule) for rule in desk.pipeline.routing.inhibit_rules}, t)
        assert t.cases.active_rules() == set()
        desk.pipeline.apply_new_inhibitions(set(), t)
        assert len(t.cases.active_rules()) == 1


def test_nothing_inhibits_itself_nor_each_other(desk: Desk, record: MakeRecord) -> None:
    desk.routing(
        inhibit_rules=[
            {"source_matchers": ["severity >= low"], "target_matchers": ["severity >= low"], "equal": ["entity"]}
        ]
    )
    desk.take(record(0), record(1))
    assert len(desk.told()) == 2


def test_a_route_keeps_quiet_in_its_window(desk: Desk, record: MakeRecord) -> None:
    night = {"name": "night", "matchers": ["severity <= high"], "mute_time_intervals": ["sunday"]}
    desk.routing(time_intervals={"sunday": {"weekdays": ["sun"], "times": ["00:00-12:30"]}}, route={"routes": [night]})
    desk.take(record(0), record(1, severity="critical"))
    assert [told["severity"] for told in desk.told()] == ["critical"]
    for _ in range(7):
        desk.later(300)
    assert [told["severity"] for told in desk.told()] == ["critical", "high"]


def test_an_alert_that_two_routes_take_is_a_case_of_each(desk: Desk, record: MakeRecord) -> None:
    audit = {"name": "audit", "channels": ["archive"], "continue": True}
    urgent = {"name": "urgent", "matchers": ["severity >= high"], "channels": ["oncall"]}
    desk.routing(route={"channels": ["ops"], "routes": [audit, urgent]})
    desk.take(record())
    assert [told["routes"] for told in desk.told()] == [["audit"], ["urgent"]]
    assert [channel for channel, _ in desk.deliveries()] == ["archive", "oncall"]


def test_a_case_whose_route_is_gone_is_told_by_the_root(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route={"channels": ["ops"], "routes": [BY_CARD | {"name": "cards", "group_wait": "1m"}]})
    desk.take(record())
    desk.routing(route={"channels": ["ops"]})
    desk.later(60)
    assert [channel for channel, _ in desk.deliveries()] == ["ops"]


CHANNELS = {name: {"type": "kafka", "topic": name} for name in ("ops", "oncall", "chat")}


def of_each(desk: Desk, status: str) -> list[str]:
    """The channels that were told this status."""
    with desk.store.reading() as t:
        query = sql.select(tables.deliveries.c.channel, tables.outbox.c.body).join(
            tables.outbox, tables.outbox.c.id == tables.deliveries.c.notification_id
        )
        rows = t._connection.execute(query).all()
    return sorted(row.channel for row in rows if json.loads(row.body)["data"]["status"] == status)


@pytest.mark.parametrize("below", [[], [BY_CARD | {"name": "new", "channels": ["chat"]}]], ids=["removed", "renamed"])
def test_the_end_of_a_case_whose_route_is_gone_is_told_to_those_who_were_told_of_it(
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
    assert desk.told()[1]["case_id"] == desk.told()[0]["case_id"]


def test_news_of_a_case_whose_route_is_gone_go_to_the_root_and_its_end_to_all(desk: Desk, record: MakeRecord) -> None:
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


def test_the_end_of_a_case_goes_to_who_was_told_of_it_though_its_route_has_other_channels_now(
    desk: Desk, record: MakeRecord
) -> None:
    route = BY_CARD | {"send_resolved": True}
    desk.routing(channels=CHANNELS, route=route | {"channels": ["oncall"]})
    desk.take(record())
    desk.routing(channels=CHANNELS, route=route | {"channels": ["ops"]})
    desk.later(3600)
    assert of_each(desk, "resolved") == ["oncall", "ops"]


def test_a_flood_is_parked_and_can_be_released_or_dropped(desk: Desk, record: MakeRecord) -> None:
    from lozenge_downstream.model import Outcome

    desk.routing(rate_limit={"alerts": 2, "within": "1m"})
    desk.take(*(record(n) for n in range(5)))
    assert len(of_large_amount(desk)) == 2
    with desk.store.transaction(exclusive=True) as t:
        assert t.received_alerts.rate_limited() == {"large_amount": 3}
        desk.pipeline.process(
            t.received_alerts.take_rate_limited("large_amount", Outcome.ACCEPTED, "released by ann", 2), t
        )
        assert len(t.received_alerts.take_rate_limited("large_amount", Outcome.DROPPED, "dropped by ann", 100)) == 1
        assert t.received_alerts.rate_limited() == {}
        assert t.received_alerts.accepted_within(["large_amount"], 60) == {"large_amount": 2}, (
            "what was released is no new rate_limit"
        )
    assert len(of_large_amount(desk)) == 4


def of_large_amount(desk: Desk) -> list[Any]:
    return [told for told in desk.told() if told["detector"] == "large_amount"]


def test_a_flood_is_told_of_once_an_hour(desk: Desk, record: MakeRecord) -> None:
    desk.routing(rate_limit={"alerts": 1, "within": "1m"})
    desk.take(*(record(n) for n in range(5)))
    desk.take(*(record(n) for n in range(5, 9)))
    alarms = [told for told in desk.told() if told["detector"] == "lozenge"]
    assert [(told["title"], told["subject"]) for told in alarms] == [
        ("large_amount exceeds its rate limit", "detector:large_amount")
    ]


def test_a_detector_that_falls_silent_against_its_history_is_told_of_once(desk: Desk, record: MakeRecord) -> None:
    def raise_silence_alarms() -> list[str]:
        with desk.store.transaction(exclusive=True) as t:
            desk.pipeline.raise_silence_alarms(t)
        return [told["title"] for told in desk.told() if told["detector"] == "lozenge"]

    for number in range(4 * 24):
        desk.take(record(number), record(1000 + number))
        assert raise_silence_alarms() == []
        desk.now += 3600
    desk.now += 3 * 3600
    assert raise_silence_alarms() == [], "six to eight alerts that do not come may be chance"
    desk.now += 4 * 3600
    assert raise_silence_alarms() == ["large_amount is silent"]
    assert raise_silence_alarms() == ["large_amount is silent"]


def test_a_detector_of_many_alerts_a_minute_is_not_silent_between_two(desk: Desk, record: MakeRecord) -> None:
    desk.take(record(0))
    desk.now += 3 * 86_400
    desk.take(record(1))
    with desk.store.reading() as t:
        (seen,) = t.received_alerts.baselines(14).values()
    busy = Baseline(seen.first_at, seen.last_at, [1800.0] * 24)
    assert list(silence_alarms({"busy": busy}, desk.now + 59)) == []
    assert list(silence_alarms({"busy": busy}, desk.now + 299)) == []
    assert len(list(silence_alarms({"busy": busy}, desk.now + 361))) == 1


def test_a_detector_that_is_new_may_be_silent(desk: Desk, record: MakeRecord) -> None:
    desk.take(*(record(n) for n in range(100)))
    desk.now += 30 * 86_400
    with desk.store.transaction(exclusive=True) as t:
        desk.pipeline.raise_silence_alarms(t)
    assert all(told["detector"] == "large_amount" for told in desk.told())

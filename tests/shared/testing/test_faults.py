"""Where batches end so that they divide the groups of an aggregate that alert."""

from datetime import UTC, datetime, timedelta
from typing import Any

from lozenge.testing.faults import dividing_ends, hostile
from lozenge.testing.runner import AlertRecord
from tests.merged_streams import BY_ACCOUNT
from tests.streams import AUTH

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def alert(entity: str, minute: int) -> AlertRecord:
    at = NOON + timedelta(minutes=minute)
    return AlertRecord("id", entity, "low", 0.5, "Many", "many", (), {}, {}, at, None)


def events(*entities: str, field: str = "merchant_id") -> list[dict[str, Any]]:
    """One a minute."""
    return [{field: entity, "event_time": NOON + timedelta(minutes=n)} for n, entity in enumerate(entities)]


def test_a_batch_ends_before_the_last_event_that_a_group_counts_and_around_the_middle_one() -> None:
    stream = events("a", "b", "a", "b", "a", "b", "a")
    assert set(dividing_ends(stream, [alert("a", 6)])) == {6, 4, 5}
    assert set(dividing_ends(stream, [alert("a", 3)])) == {2, 3}, "later events are of another window"


def test_the_entity_may_be_in_any_field() -> None:
    assert set(dividing_ends(events("x", "DE", "DE", field="country"), [alert("DE", 9)])) == {2, 3}


def test_few_groups_are_divided_because_each_batch_costs_time() -> None:
    stream = events(*(f"m{n}" for n in range(100)))
    assert len(set(dividing_ends(stream, [alert(f"m{n}", n) for n in range(100)]))) <= 18


def test_nothing_is_divided_for_an_entity_that_no_event_has() -> None:
    assert list(dividing_ends(events("a"), [alert("b", 1)])) == []


def test_of_several_streams_each_has_its_hostile_events() -> None:
    found = hostile(stream=BY_ACCOUNT)
    assert len({event["event_id"] for event in found}) == len(found)
    of_auth = [event for event in found if event["stream"] == "auth"]
    assert len(of_auth) < len(found)
    alone = hostile(stream=AUTH.model_copy(update={"keys": {"account": "account_id"}}))
    assert [event["amount"] for event in of_auth] == [event["amount"] for event in alone]
    assert {event["account_id"] for event in found} == {"hostile"}

"""The events that raise alerts by number are those that a detector finds one by one."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.bench.harness.workload import LIMIT, Kind, Task, notified, number

KEYS, EVENTS = 100, 1200


def alerts(task: Task) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number of the event, alert) of a detector that knows nothing of laps."""
    counts: dict[str, int] = {}
    countries: dict[str, str] = {}
    for n in range(EVENTS):
        event = task.event(n, 0)
        card = event["card_id"]
        counts[card] = count = counts.get(card, 0) + 1
        last, countries[card] = countries.get(card), event["country"]
        due = {
            "rule": event["amount"] > LIMIT,
            "aggregate": count % task.every == 0,
            "fold": last not in (None, event["country"]),
        }
        if due[task.kind]:
            evidence = {"event_ids": [event["event_id"]], "values": {"count": str(count)}}
            yield n, {"entity": {"id": card}, "evidence": evidence}


@pytest.mark.parametrize("every", [2, 5])
@pytest.mark.parametrize("kind", ["rule", "aggregate", "fold"])
def test_it_raises_what_a_detector_finds(kind: Kind, every: int) -> None:
    task = Task(kind, every, KEYS)
    found = list(alerts(task))
    assert [n for n, _ in found] == [n for n in range(EVENTS) if task.raises(n)]
    assert found


@pytest.mark.parametrize("task", [Task("rule", 5, KEYS), Task("aggregate", 1, KEYS), Task("fold", 5, KEYS)])
def test_an_alert_names_its_event(task: Task) -> None:
    assert all(task.number_of(alert) == n for n, alert in alerts(task))


def test_each_lap_touches_every_card_once_in_another_order() -> None:
    task = Task("rule", keys=KEYS)
    laps = [[task.event(lap * KEYS + n, 0)["card_id"] for n in range(KEYS)] for lap in range(3)]
    assert all(len(set(lap)) == KEYS for lap in laps)
    assert laps[0] != laps[1] != laps[2]


def test_an_event_is_stamped_with_the_moment_it_is_meant_to_be_sent() -> None:
    event = Task("rule").event(7, 1_500_000_123_456_789_000)
    assert event["event_time"].isoformat() == "2017-07-14T02:42:03.456789+00:00"
    assert number(event["event_id"]) == 7


def test_a_webhook_names_the_event_of_its_raw_record() -> None:
    raw = Task("rule", every=5).raw(4_215, 0)
    body = json.dumps({"data": {"text": f"900.00 EUR at merchant {raw['merchant']} is above the limit\n- more"}})
    assert notified(body.encode()) == 4_215

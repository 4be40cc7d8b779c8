"""One stream of events is made from the runs of a detector's tests, equal for equal seeds."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from lozenge import Detector, Settings
from lozenge.contracts.partitioner import partition_of
from lozenge.testing import with_manifest
from lozenge.testing.case_generator import RECOMBINED, entity, gather
from lozenge.testing.events import PLATFORM, PartialEvent, events
from lozenge.testing.runner import AlertRecord, DeadLetterRecord, Run, RunInput, case_of
from tests.merged_streams import BY_CARD

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DETECTOR = with_manifest(Detector(lambda events, settings, tables: events, settings=Settings))
ALERT = AlertRecord("id", "card-1", "high", 0.5, "A test", "seen", (), {}, {}, NOON, None)


def case(*events: PartialEvent) -> RunInput:
    return case_of(DETECTOR, events)


def result(alerts: int = 1, failed: Iterable[str] = ()) -> Run:
    return Run([ALERT] * alerts, [DeadLetterRecord(event_id, "unlucky") for event_id in failed])


def ids(made: RunInput | None) -> list[Any]:
    assert made is not None
    return [event["event_id"] for event in made.events]


def test_runs_without_an_alert_make_no_case() -> None:
    assert gather([], 1) is None
    assert gather([(case({"event_id": "e"}), result(alerts=0))], 1) is None


def test_the_events_of_all_runs_come_by_event_time_and_further_ones_after_them() -> None:
    made = gather(
        [(case({"event_id": "e", "at": "10s"}), result()), (case({"event_id": "e", "at": "5s"}), result())], 1
    )
    assert ids(made)[:2] == ["2-e", "1-e"]
    assert ids(made)[2:] == [f"recombined-{n}" for n in range(RECOMBINED)]
    assert made is not None
    times = [event["event_time"] for event in made.events]
    assert times == sorted(times)


def test_entities_of_two_runs_never_meet() -> None:
    made = gather([(case({"card_id": "card-1"}), result()), (case({"card_id": "card-1"}), result())], 1)
    assert made is not None
    first, second = (event["card_id"] for event in made.events[:2])
    assert first != second


def test_a_row_for_an_entity_is_there_for_each_of_its_names() -> None:
    loaded = with_manifest(
        Detector(lambda events, settings, tables: events, settings=Settings),
        tables={"watched": {"list": "watched_cards"}},
    )
    rows = [{"value": "card-1", "reason": "ours"}, {"value": "card-9", "reason": "of nobody"}]
    given = case_of(loaded, [{"card_id": "card-1"}, {"card_id": "card-2"}], None, {"watched": rows})
    made = gather([(given, result()), (given, result())], 1)
    assert made is not None
    own = [event["card_id"] for event in made.events if str(event["card_id"]).startswith("card-1/")]
    further = {event["card_id"] for event in made.events[-RECOMBINED:]}
    found = {row["value"]: row["reason"] for row in made.tables["watched"]}
    assert len(found) == len(made.tables["watched"]), "a key comes once"
    assert {found.get(name) for name in (*own, *further)} == {"ours"}
    assert found["card-9"] == "of nobody"


def test_an_event_that_became_a_dead_letter_is_skipped() -> None:
    made = gather([(case({"event_id": "good"}, {"event_id": "bad"}), result(failed=["bad"]))], 1)
    assert ids(made)[:-RECOMBINED] == ["1-good"]


def test_equal_seeds_make_equal_events() -> None:
    runs = [(case({"mcc": "5411"}, {"mcc": "5812"}), result())]
    made = [gather(runs, seed) for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]


@pytest.mark.parametrize("name", ["card-1", "card-2", ""])
def test_renamed_entities_share_one_partition(name: str) -> None:
    renamed = {entity(name, suffix) or "" for suffix in ("1", "2", "3")}
    assert len(renamed) == 3
    assert {partition_of(each.encode(), PLATFORM.partitions) for each in renamed} == {0}
    assert entity(None, "1") is None


def test_events_of_several_streams_are_recombined_within_their_own() -> None:
    loaded = replace(DETECTOR, stream=BY_CARD)
    given = [{"stream": ("auth", "sign_in")[n % 2], "country": f"C{n}"} for n in range(8)]
    made = gather([(case_of(loaded, given), result())], 1)
    assert made is not None
    further = made.events[len(given) :]
    assert {event["stream"] for event in further} == {"auth", "sign_in"}
    assert events(further, BY_CARD) == further, "none has a field of the other stream"

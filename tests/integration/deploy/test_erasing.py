"""A detector whose state names an erased entity is paused, its state topic changed, and it resumes; nothing is lost."""

import json
from typing import Any

import pytest

from lozenge.contracts.record import Record
from lozenge.kafka.direct_write import write_directly
from lozenge_deploy.operations.erasure.states import WHY
from tests.integration.deploy.worlds import World

NOT_DONE = ["notifier", "cache last_authorisation"]
CARD, OTHER = "card_4f1c09e27ab35d68", "card_9b3e77d01c64aa52"


@pytest.fixture(autouse=True)
def _live(world: World) -> None:
    world.ensure_live(world.one, world.two)


def remember(world: World, *cards: str) -> None:
    """States of these cards, as a fold stores them."""
    state = world.kafka.topics.detector(world.one).state
    entries = [Record(state, 0, json.dumps([card]).encode(), b'{"state":{"seen":1}}') for card in cards]
    assert write_directly(world.kafka, entries) == ""


def erase(world: World) -> dict[str, dict[str, Any]]:
    """The receipt by place; no notifier runs and no server of the cache is named, so these places are not done."""
    said = world.lozenge("erase", "card", CARD, "--yes", "-o", "json", code=1)
    lines = json.JSONDecoder().raw_decode(said[said.index("[") :])[0]
    found = {line["place"]: line for line in lines}
    assert [place for place, line in found.items() if line["outcome"] == "not done"] == NOT_DONE
    return found


def test_a_detector_runs_again_after_its_state_was_erased_and_has_processed_each_event_once(world: World) -> None:
    remember(world, CARD, OTHER)
    changes = world.lozenge("history", world.one).count(WHY)
    before, other, ids = world.pid(world.one), world.settled(world.two), world.large(20)
    line = erase(world)[f"state of {world.one}"]
    assert (line["outcome"], line["records"]) == ("removed", 1)
    assert world.pid(world.one) != before
    ids |= world.large(20)
    world.assert_each_once(world.one, ids)
    assert world.settled(world.two).pid == other.pid, "it had no state of the card"
    history = world.lozenge("history", world.one)
    assert history.count(WHY) == changes + 2
    assert json.loads(world.lozenge("state", world.one, OTHER, "-o", "json"))
    assert "[]" in world.lozenge("state", world.one, CARD, "-o", "json")


def test_a_detector_that_a_killed_erasure_has_paused_runs_again_after_the_next_one(world: World) -> None:
    remember(world, CARD)
    world.lozenge("pause", world.one, "-m", WHY)
    assert erase(world)[f"state of {world.one}"]["outcome"] == "removed"
    world.settled(world.one)


def test_a_detector_that_was_paused_stays_so(world: World) -> None:
    remember(world, CARD)
    world.lozenge("pause", world.one, "-m", "for the night")
    assert erase(world)[f"state of {world.one}"]["outcome"] == "removed"
    assert not world.running(world.one)
    world.lozenge("resume", world.one)

"""Which dead letters are meant, in which order, and which of them can be judged anew."""

from datetime import UTC, datetime

import pytest

from lozenge.contracts.dead_letters import DeadLetter
from lozenge.contracts.record import Place, place_of
from lozenge.errors import UsageError
from lozenge.protocol.dlq_resolutions import DROPPED, DeadLetterSelection, Resolution, ranges_of, replayable


def letter(place: Place, origin: Place, key: bytes = b"card", stage: str = "detect") -> DeadLetter:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    return DeadLetter(place, "spotter", "events", origin, stage, "ValueError", "no", 1, "", at, key, b"", [])


LETTERS = [letter((0, 5), (1, 9), b"a"), letter((0, 7), (0, 30), b"b"), letter((1, 2), (0, 4), b"a")]


def test_letters_come_in_the_order_of_what_they_stand_for() -> None:
    assert [x.origin for x in DeadLetterSelection().of("spotter", LETTERS)] == [(0, 4), (0, 30), (1, 9)]
    assert [x.place for x in DeadLetterSelection(key="a").of("spotter", LETTERS)] == [(1, 2), (0, 5)]
    assert [x.place for x in DeadLetterSelection(((0, 7),)).of("spotter", LETTERS)] == [(0, 7)]


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (DeadLetterSelection(((0, 7), (3, 1))), "none is unresolved at 3:1"),
        (DeadLetterSelection(key="c"), "none is unresolved with the key c"),
    ],
)
def test_what_does_not_stand_is_named(choice: DeadLetterSelection, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        choice.of("spotter", LETTERS)


def test_a_line_names_exactly_its_letters() -> None:
    places = [(0, 3), (0, 4), (0, 6), (2, 0)]
    ranges = ranges_of(reversed(places))
    assert ranges == {0: [(3, 5), (6, 7)], 2: [(0, 1)]}
    assert Resolution(DROPPED, "id", ranges, 4).places() == set(places)


@pytest.mark.parametrize("kind", ["stateful", "aggregate"])
def test_what_remembers_is_sent_to_judge_its_events_again_in_their_order(kind: str) -> None:
    with pytest.raises(UsageError) as refused:
        replayable("spotter", kind, LETTERS)
    assert '`lozenge offsets spotter --to "0:4 1:9" --state rebuild`' in refused.value.hint


def test_what_stands_for_no_record_is_left_out_and_refused_alone() -> None:
    timer = letter((0, 9), (2, -1), stage="timer")
    assert replayable("spotter", "rule", [timer, *LETTERS]) == LETTERS
    with pytest.raises(UsageError, match="no record failed, but a timer"):
        replayable("spotter", "rule", [timer])


@pytest.mark.parametrize("text", ["nine", "1", "1:", "-1:2", "1:2:3"])
def test_a_place_is_a_partition_and_an_offset(text: str) -> None:
    assert place_of("2:9120") == (2, 9120)
    with pytest.raises(UsageError, match="no place in a topic"):
        place_of(text)

"""Which dead letters are selected, in which order, and which of them can be replayed."""

from datetime import UTC, datetime

import pytest

from lozenge.contracts.dead_letters import DeadLetter
from lozenge.contracts.detector_kind import DetectorKind
from lozenge.contracts.record import RecordPosition, parse_position
from lozenge.errors import UsageError
from lozenge.protocol.dlq_resolutions import DROPPED, DeadLetterSelection, Resolution, ranges_of, replayable


def dead_letter(
    position: RecordPosition, origin: RecordPosition, key: bytes = b"card", stage: str = "detect"
) -> DeadLetter:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    return DeadLetter(position, "spotter", "events", origin, stage, "ValueError", "no", 1, "", at, key, b"", [])


DEAD_LETTERS = [
    dead_letter((0, 5), (1, 9), b"a"),
    dead_letter((0, 7), (0, 30), b"b"),
    dead_letter((1, 2), (0, 4), b"a"),
]


def test_dead_letters_come_in_the_order_of_their_origins() -> None:
    assert [x.origin for x in DeadLetterSelection().of("spotter", DEAD_LETTERS)] == [(0, 4), (0, 30), (1, 9)]
    assert [x.position for x in DeadLetterSelection(key="a").of("spotter", DEAD_LETTERS)] == [(1, 2), (0, 5)]
    assert [x.position for x in DeadLetterSelection(((0, 7),)).of("spotter", DEAD_LETTERS)] == [(0, 7)]


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (DeadLetterSelection(((0, 7), (3, 1))), "none is unresolved at 3:1"),
        (DeadLetterSelection(key="c"), "none is unresolved with the key c"),
    ],
)
def test_a_selection_that_is_resolved_already_is_named(choice: DeadLetterSelection, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        choice.of("spotter", DEAD_LETTERS)


def test_a_resolution_names_exactly_its_dead_letters() -> None:
    positions = [(0, 3), (0, 4), (0, 6), (2, 0)]
    ranges = ranges_of(reversed(positions))
    assert ranges == {0: [(3, 5), (6, 7)], 2: [(0, 1)]}
    assert Resolution(DROPPED, "id", ranges, 4).positions() == set(positions)


@pytest.mark.parametrize("kind", [DetectorKind.STATEFUL, DetectorKind.AGGREGATE])
def test_a_detector_with_state_has_to_reprocess_its_events_in_order(kind: DetectorKind) -> None:
    with pytest.raises(UsageError) as refused:
        replayable("spotter", kind, DEAD_LETTERS)
    assert '`lozenge offsets spotter --to "0:4 1:9" --state rebuild`' in refused.value.hint


def test_what_has_no_record_is_skipped_and_refused_alone() -> None:
    timer = dead_letter((0, 9), (2, -1), stage="timer")
    assert replayable("spotter", DetectorKind.RULE, [timer, *DEAD_LETTERS]) == DEAD_LETTERS
    with pytest.raises(UsageError, match="no record failed, but a timer"):
        replayable("spotter", DetectorKind.RULE, [timer])


@pytest.mark.parametrize("text", ["nine", "1", "1:", "-1:2", "1:2:3"])
def test_a_position_is_a_partition_and_an_offset(text: str) -> None:
    assert parse_position("2:9120") == (2, 9120)
    with pytest.raises(UsageError, match="no position in a topic"):
        parse_position(text)

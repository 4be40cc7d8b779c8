"""A replay keeps the order within a key, and gives alerts the positions of the original records."""

from datetime import UTC, datetime

from lozenge.contracts.dead_letters import DeadLetter
from lozenge.detector.events import Alert
from lozenge.job.batch_result import DraftAlert, FailedRecord
from lozenge.job.tools.dlq_replay import _blocked, _with_origin

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def dead_letters(keys: str) -> list[DeadLetter]:
    return [
        DeadLetter(
            position=(0, number),
            app="spotter",
            topic="pay.events.v1",
            origin=(3, 100 + number),
            stage="detect",
            error="ValueError",
            message="bad",
            attempt=1,
            first_failed_at=NOON.isoformat(),
            at=NOON,
            key=key.encode(),
            value=b"",
            headers=(),
        )
        for number, key in enumerate(keys)
    ]


def failed(*numbers: int) -> list[FailedRecord]:
    return [FailedRecord(0, number, ValueError("bad")) for number in numbers]


def test_those_after_a_failed_one_of_their_key_are_blocked() -> None:
    keys: set[bytes | None] = set()
    assert _blocked(dead_letters("abaab"), failed(2), keys) == {3}
    assert keys == {b"a"}


def test_a_key_that_failed_blocks_later_steps_too() -> None:
    assert _blocked(dead_letters("ab"), failed(), {b"a"}) == {0}


def test_nothing_is_blocked_unless_something_fails() -> None:
    assert _blocked(dead_letters("aaa"), failed(), set()) == set()


def test_an_alert_has_the_position_of_the_original_record() -> None:
    step = dead_letters("ab")
    draft = DraftAlert(Alert(reason="seen"), "card-1", "e1", NOON, NOON, trigger=(0, 1), position=(0, 1))
    moved = _with_origin(draft, step)
    assert (moved.trigger, moved.position) == ((3, 101), (3, 101))


def test_an_alert_without_a_position_stays_as_it_is() -> None:
    draft = DraftAlert(Alert(reason="seen"), "card-1", "e1", NOON, NOON)
    assert _with_origin(draft, dead_letters("a")) is draft

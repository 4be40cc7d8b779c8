"""A job resumes at offsets that exist, or its error names the missing ones."""

import msgspec
import pytest

from lozenge.detector.manifest import Manifest
from lozenge.errors import OffsetsLost
from lozenge.job.commit.resume_offsets import is_far_behind, refuse_recreated_topic, resolve_start_offsets
from lozenge.kafka.group_offsets import Positions
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.protocol.coverage import OFFSETS_RESET, STARTED, CoverageSegment

BOUNDS = {0: (10, 100), 1: (0, 50)}
KNOWN = CoverageSegment(STARTED, "r1", "d", 3, {0: 10, 1: 7}, {0: 10, 1: 7}, input_id="one")


def at(
    offsets: dict[int, int], *, missing: frozenset[int] = frozenset(), known: CoverageSegment | None = KNOWN
) -> dict[int, int]:
    return resolve_start_offsets(
        "spotter", "events", Positions(offsets, CommitMetadata(3), missing), BOUNDS, known, "stop"
    )


def test_a_job_resumes_anywhere_between_the_earliest_offset_and_the_end() -> None:
    assert at({0: 10, 1: 50}) == {0: 10, 1: 50}


def test_the_first_start_needs_no_offsets() -> None:
    assert at({0: 10, 1: 0}, missing=frozenset({0, 1}), known=None) == {0: 10, 1: 0}


def test_every_lost_partition_is_named_at_once() -> None:
    with pytest.raises(OffsetsLost) as raised:
        at({0: 4, 1: 51})
    assert raised.value.problems == (
        "partition 0: 4 is next, but the earliest is 10",
        "partition 1: 51 is next, but the topic ends at 50: it was shortened",
    )
    assert "lozenge offsets spotter --earliest" in raised.value.hint


def test_a_state_is_not_resumed_at_offsets_that_another_tool_has_moved() -> None:
    moved = Positions({0: 20, 1: 5}, None, moved=frozenset({0, 1}))
    assert resolve_start_offsets("spotter", "events", moved, BOUNDS, KNOWN, "stop") == {0: 20, 1: 5}
    assert resolve_start_offsets("spotter", "events", moved, BOUNDS, None, "stop", stateless=False) == {0: 20, 1: 5}
    with pytest.raises(OffsetsLost, match="partition 1: another tool has moved the offset to 5") as raised:
        resolve_start_offsets("spotter", "events", moved, BOUNDS, KNOWN, "stop", stateless=False)
    assert len(raised.value.problems) == 2
    assert "with --state rebuild or fresh" in raised.value.hint


def test_expired_offsets_are_not_a_first_start() -> None:
    with pytest.raises(OffsetsLost, match="partition 1: the committed offset has expired; the last known one is 7"):
        at({0: 10, 1: 0}, missing=frozenset({1}))


def test_events_removed_by_retention_are_skipped_only_where_that_is_declared() -> None:
    positions = Positions({0: 4, 1: 5}, CommitMetadata(3))
    assert resolve_start_offsets("spotter", "events", positions, BOUNDS, KNOWN, "skip") == {0: 10, 1: 5}
    with pytest.raises(OffsetsLost, match="shortened"):
        resolve_start_offsets("spotter", "events", Positions({0: 4, 1: 51}, CommitMetadata(3)), BOUNDS, KNOWN, "skip")


def test_a_topic_of_the_same_name_is_not_the_same_topic() -> None:
    refuse_recreated_topic("spotter", "events", KNOWN, "one")
    refuse_recreated_topic("spotter", "events", None, "two")
    with pytest.raises(OffsetsLost, match="events was deleted and created again"):
        refuse_recreated_topic("spotter", "events", KNOWN, "two")


def skips_backlog(known: CoverageSegment | None, *, left: int = 21, **declared: str) -> bool:
    declaration = Manifest.model_validate(
        {"kind": "rule", "owner": "x", "title": "x", "max_batch": 20, "backlog": "newest-first"} | declared
    )
    return is_far_behind({0: 10, 1: 0}, {0: 10 + left, 1: 0}, declaration, known)


def test_newest_first_skips_a_backlog_of_more_than_one_batch() -> None:
    assert skips_backlog(KNOWN)
    assert not skips_backlog(KNOWN, left=20)
    assert not skips_backlog(KNOWN, backlog="oldest-first")


def test_a_backlog_is_not_skipped_at_the_first_start_or_after_a_reset_of_offsets() -> None:
    assert not skips_backlog(None)
    assert not skips_backlog(msgspec.structs.replace(KNOWN, reason=OFFSETS_RESET))

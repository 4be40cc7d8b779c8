"""What a job should judge next is there, or the job says what is not."""

import msgspec
import pytest

from lozenge.detector.manifest import Manifest
from lozenge.errors import OffsetsLost
from lozenge.job.commit.resume_offsets import refuse_another, resumable, too_far
from lozenge.kafka.positions import CommitMetadata, Positions
from lozenge.protocol.coverage import CoverageSegment

BOUNDS = {0: (10, 100), 1: (0, 50)}
KNOWN = CoverageSegment("start", "r1", "d", 3, {0: 10, 1: 7}, {0: 10, 1: 7}, input="one")


def at(
    offsets: dict[int, int], *, missing: frozenset[int] = frozenset(), known: CoverageSegment | None = KNOWN
) -> dict[int, int]:
    return resumable("spotter", "events", Positions(offsets, CommitMetadata(3), missing), BOUNDS, known, "stop")


def test_goes_on_where_it_ended_anywhere_between_the_earliest_and_the_end() -> None:
    assert at({0: 10, 1: 50}) == {0: 10, 1: 50}


def test_the_first_start_needs_no_offsets() -> None:
    assert at({0: 10, 1: 0}, missing=frozenset({0, 1}), known=None) == {0: 10, 1: 0}


def test_every_partition_that_is_lost_is_named_at_once() -> None:
    with pytest.raises(OffsetsLost) as raised:
        at({0: 4, 1: 51})
    assert raised.value.problems == (
        "partition 0: 4 is next, but the earliest is 10",
        "partition 1: 51 is next, but the topic ends at 50: it was shortened",
    )
    assert "lozenge offsets spotter --earliest" in raised.value.hint


def test_expired_offsets_are_no_first_start() -> None:
    with pytest.raises(OffsetsLost, match="partition 1: the group's offset is gone; the last that is known is 7"):
        at({0: 10, 1: 0}, missing=frozenset({1}))


def test_what_retention_took_is_skipped_only_where_that_is_declared() -> None:
    positions = Positions({0: 4, 1: 5}, CommitMetadata(3))
    assert resumable("spotter", "events", positions, BOUNDS, KNOWN, "skip") == {0: 10, 1: 5}
    with pytest.raises(OffsetsLost, match="shortened"):
        resumable("spotter", "events", Positions({0: 4, 1: 51}, CommitMetadata(3)), BOUNDS, KNOWN, "skip")


def test_a_topic_of_the_same_name_is_not_the_same_topic() -> None:
    refuse_another("spotter", "events", KNOWN, "one")
    refuse_another("spotter", "events", None, "two")
    with pytest.raises(OffsetsLost, match="events was made anew"):
        refuse_another("spotter", "events", KNOWN, "two")


def begins_newest_first(known: CoverageSegment | None, *, left: int = 21, **declared: str) -> bool:
    declaration = Manifest.model_validate(
        {"kind": "rule", "owner": "x", "title": "x", "max_batch": 20, "backlog": "newest-first"} | declared
    )
    return too_far({0: 10, 1: 0}, {0: 10 + left, 1: 0}, declaration, known)


def test_newest_first_leaves_behind_what_is_more_than_a_batch() -> None:
    assert begins_newest_first(KNOWN)
    assert not begins_newest_first(KNOWN, left=20)
    assert not begins_newest_first(KNOWN, backlog="oldest-first")


def test_nobody_leaves_behind_what_no_coverage_would_remember_or_where_somebody_has_moved_it() -> None:
    assert not begins_newest_first(None)
    assert not begins_newest_first(msgspec.structs.replace(KNOWN, what="moved"))

"""Upstream skips no raw record by itself: it resumes where it was, or says what is gone."""

import pytest

from lozenge.errors import OffsetsLost
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.protocol.coverage import STARTED, CoverageSegment
from lozenge_upstream.streaming.start_offsets import CommittedRaw, moved_by_others, start_offsets

OURS = CommitMetadata()
KNOWN = CoverageSegment(STARTED, "upstream", "", 0, {0: 150, 1: 0}, {0: 150, 1: 0}, input_id="id", topic="AUTH-JSON")


def test_it_resumes_at_the_committed_offsets_and_at_the_earliest_of_what_it_never_read() -> None:
    committed = {
        0: CommittedRaw(200, OURS, 100, 300),
        1: CommittedRaw(-1, None, 7, 9),
        2: CommittedRaw(300, OURS, 0, 300),
    }
    assert start_offsets("upstream", "AUTH-JSON", committed, None, "id") == {0: 200, 1: 7, 2: 300}


@pytest.mark.parametrize(
    ("at", "input_id", "problem"),
    [
        (CommittedRaw(200, OURS, 260, 300), "id", "partition 0: 60 records 200-259 were deleted before they were read"),
        (CommittedRaw(200, OURS, 300, 300), "id", "partition 0: 100 records 200-299 were deleted"),
        (CommittedRaw(200, OURS, 0, 40), "id", "partition 0: 200 is next, but the topic ends at 40: it was shortened"),
        (
            CommittedRaw(-1, None, 0, 300),
            "id",
            "partition 0: the committed offset has expired; the last known one is 150",
        ),
        (CommittedRaw(200, OURS, 0, 300), "other", "the topic was deleted and created again"),
    ],
)
def test_records_that_are_gone_are_named_with_the_command_that_accepts_it(
    at: CommittedRaw, input_id: str, problem: str
) -> None:
    with pytest.raises(OffsetsLost) as caught:
        start_offsets("upstream-login", "AUTH-JSON", {0: at}, KNOWN, input_id)
    assert problem in str(caught.value)
    assert "AUTH-JSON" in caught.value.message
    assert "`lozenge offsets upstream-login --earliest`" in (caught.value.hint or "")


def test_offsets_of_another_tool_are_noticed() -> None:
    committed = {0: CommittedRaw(7, None, 0, 300), 1: CommittedRaw(7, OURS, 0, 300), 2: CommittedRaw(7, None, 0, 9)}
    assert moved_by_others(committed, KNOWN) == [0]
    assert moved_by_others(committed, None) == []

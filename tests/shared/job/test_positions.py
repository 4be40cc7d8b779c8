"""Commit metadata and generations."""

import pytest

from lozenge.errors import StaleGeneration
from lozenge.kafka.positions import REALTIME, CommitMetadata, Positions, refuse_if_stale


def test_a_stamp_survives_the_commit_metadata() -> None:
    stamp = CommitMetadata(7, "0f3a", 411)
    assert CommitMetadata.parse(str(stamp)) == stamp


@pytest.mark.parametrize("text", [None, "", "x", "1/2", "a/b/c", "1/2/3/4"])
def test_metadata_of_another_tool_is_no_stamp(text: str | None) -> None:
    assert CommitMetadata.parse(text) is None


def test_only_a_newer_generation_refuses() -> None:
    refuse_if_stale(Positions({}, None), 1, "a")
    refuse_if_stale(Positions({}, CommitMetadata(3)), 3, "a")
    with pytest.raises(StaleGeneration, match="generation 4 has taken over"):
        refuse_if_stale(Positions({}, CommitMetadata(4)), 3, "a")


def test_a_stamp_says_whether_alerts_may_have_been_told_ahead_of_it() -> None:
    assert not CommitMetadata(7).ahead
    assert not CommitMetadata(7, "0f3a", 411).ahead
    assert CommitMetadata(7, REALTIME, 411).ahead

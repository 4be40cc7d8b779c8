"""What is committed next to an offset survives its encoding, and metadata of other tools is ignored."""

from datetime import UTC, datetime

import pytest

from lozenge.protocol.commit_metadata import CommitMetadata

SINCE = datetime(2026, 3, 1, 12, 30, 0, 5, tzinfo=UTC)
JOB = CommitMetadata(7, "0f3a", 411)


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        (JOB, "7/0f3a/411"),
        (CommitMetadata(7), "7/-/-1"),
        (CommitMetadata(7, "0f3a", 411, output_ahead=True), "7/0f3a/411/ahead"),
        (CommitMetadata(output_ahead=True, ahead_since=SINCE), "0/-/-1/ahead/2026-03-01T12:30:00.000005+00:00"),
    ],
)
def test_metadata_of_jobs_and_of_upstream_survives_its_encoding(metadata: CommitMetadata, text: str) -> None:
    assert metadata.encode() == text
    assert CommitMetadata.decode(text) == metadata
    assert CommitMetadata.decode(f"{text}\0") == metadata, "librdkafka sends a closing zero along"


@pytest.mark.parametrize("text", [None, "", "x", "1/2", "a/b/c", "1/2/3/4", "1/2/3/ahead/soon", "1/2/3/ahead/4/5"])
def test_metadata_of_another_tool_is_none_of_ours(text: str | None) -> None:
    assert CommitMetadata.decode(text) is None


def test_the_newest_commit_has_the_highest_generation_and_batch() -> None:
    texts = ["7/0f3a/411", None, "another tool", "8/11aa/3", "8/11aa/4/ahead", "2/x/900"]
    assert CommitMetadata.newest(texts) == CommitMetadata(8, "11aa", 4, output_ahead=True)
    assert CommitMetadata.newest([None, ""]) is None

"""Only a newer generation makes a job stale."""

import pytest

from lozenge.errors import StaleGeneration
from lozenge.kafka.group_offsets import Positions, refuse_if_stale
from lozenge.protocol.commit_metadata import CommitMetadata


def test_only_a_newer_generation_prevents_a_commit() -> None:
    refuse_if_stale(Positions({}, None), 1, "a")
    refuse_if_stale(Positions({}, CommitMetadata(3)), 3, "a")
    with pytest.raises(StaleGeneration, match="generation 4 has replaced it"):
        refuse_if_stale(Positions({}, CommitMetadata(4)), 3, "a")

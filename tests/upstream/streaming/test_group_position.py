"""The mark that output is ahead of the group's offsets lasts until the group has passed all of it."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest

from lozenge.apps import UPSTREAM
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.spark.checkpoint import Offsets
from lozenge_upstream.streaming.group_position import Position
from tests.streams import RELEASE, output

TOPIC = "AUTH-JSON"
KAFKA = KafkaSettings(bootstrap="127.0.0.1:1")
SINCE = datetime(2026, 1, 1, tzinfo=UTC)
AHEAD = CommitMetadata(output_ahead=True, ahead_since=SINCE)


@pytest.fixture
def position() -> Iterator[Position]:
    """After a recovery read that found records before the offsets 50 and 20."""
    with closing(Position(KAFKA, UPSTREAM, output(KAFKA), RELEASE)) as found:
        found.written_since = SINCE
        found.written_until = {(TOPIC, 0): 50, (TOPIC, 1): 20}
        yield found


@pytest.mark.parametrize(
    ("offsets", "metadata"),
    [
        ({TOPIC: {"0": 49, "1": 20}}, AHEAD),
        ({TOPIC: {"0": 50, "1": 19}}, AHEAD),
        ({TOPIC: {"0": 50, "1": 20, "2": 3}}, CommitMetadata()),
    ],
)
def test_a_commit_keeps_the_mark_while_records_ahead_of_it_remain(
    position: Position, offsets: Offsets, metadata: CommitMetadata
) -> None:
    assert position.metadata_at(offsets) == metadata


def test_without_records_ahead_there_is_no_mark(position: Position) -> None:
    position.written_since, position.written_until = None, {}
    assert position.metadata_at({TOPIC: {"0": 1}}) == CommitMetadata()


@pytest.mark.parametrize(("offsets", "is_even"), [((50, 19), False), ((49, 20), False), ((50, 20), True)])
def test_it_is_even_once_the_group_has_passed_all_that_is_written(
    position: Position, offsets: tuple[int, int], is_even: bool
) -> None:
    position._positions = {(TOPIC, 0): offsets[0], (TOPIC, 1): offsets[1]}
    assert position.is_even == is_even

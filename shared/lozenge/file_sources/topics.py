"""The topics of a file source, and the partition that a file of it belongs to."""

from lozenge.apps import file_source_app
from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.topics import REWRITTEN, Topic, Topics

FILE_PARTITIONS = 8
"""Of the positions of the files of a file source: each file is copied by the owner of its partition."""


def positions_topic(topics: Topics, source: str) -> Topic:
    """How far each file was copied, by its path."""
    return Topic(topics.prefixed(f"lozenge.files.{source}.v1"), FILE_PARTITIONS, REWRITTEN)


def topics_of(topics: Topics, source: str) -> list[Topic]:
    """What a file source writes next to the raw topic: positions and dead letters."""
    return [positions_topic(topics, source), topics.dead_letter_topic(file_source_app(source))]


def partition_of_file(path: str) -> int:
    """The partition of the position of a file."""
    return partition_of(path.encode(), FILE_PARTITIONS)

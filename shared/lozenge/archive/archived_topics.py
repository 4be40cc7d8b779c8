"""Which topics a sink takes, and how the records of each are read and called."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lozenge.archive.columns import columns_of, raw_columns
from lozenge.contracts.schemas import Schema, newest, packaged
from lozenge.contracts.topic_patterns import app_of_dead_letters, detector_of
from lozenge.contracts.topics import Topics
from lozenge.sink_declarations.archive_sink import ArchiveSink, Records
from lozenge.streams.definition import StreamDefinition


@dataclass(frozen=True)
class ArchivedTopic:
    """A topic with its `partitions`, and the `view` by which its table is queried.

    `reader` is the schema as which its records are read, and `schemas` are the versions that this process knows; the
    records of dead-letter topics are kept as they are and have neither.
    """

    topic: str
    partitions: int
    records: Records
    view: str
    reader: Schema | None = None
    schemas: tuple[Schema, ...] = ()

    @property
    def columns(self) -> pa.Schema:
        """Those of its table; raises SchemaError for a field that has none."""
        return raw_columns() if self.reader is None else columns_of(self.reader.definition)

    def readers(self, announced: Iterable[Schema]) -> dict[Schema, Schema]:
        """As what records of each known schema are read; an announced one has the id that is announced."""
        assert self.reader is not None
        known = {s.id: s for s in (*self.schemas, *announced) if s.name == self.reader.name}
        return dict.fromkeys(known.values(), self.reader)


def archived_topics(
    sink: ArchiveSink, topics: Topics, streams: Iterable[StreamDefinition], existing: Mapping[str, int]
) -> list[ArchivedTopic]:
    """What a sink takes of the topics that exist, with their partitions, by name."""
    found = [*_events(sink, topics, streams, existing), *_contracts(sink, topics, existing)]
    return sorted(found, key=lambda each: each.topic)


def _events(
    sink: ArchiveSink, topics: Topics, streams: Iterable[StreamDefinition], existing: Mapping[str, int]
) -> Iterator[ArchivedTopic]:
    if Records.EVENTS not in sink.records:
        return
    for stream in streams:
        topic = stream.events(topics)
        if topic in existing and (not sink.streams or stream.name in sink.streams):
            reader = stream.event_schema
            yield ArchivedTopic(
                topic, existing[topic], Records.EVENTS, f"events_{stream.name}", reader, tuple(stream.schemas)
            )


def _contracts(sink: ArchiveSink, topics: Topics, existing: Mapping[str, int]) -> Iterator[ArchivedTopic]:
    for topic, partitions in existing.items():
        found = _named(topics, topic)
        if found is not None and found[0] in sink.records:
            records, view, contract = found
            versions = tuple(schema for schema in packaged() if schema.name == contract)
            reader = newest(contract) if contract else None
            yield ArchivedTopic(topic, partitions, records, view, reader, versions)


def _named(topics: Topics, topic: str) -> tuple[Records, str, str] | None:
    """What is in a topic that is no stream's, its view, and the contract of its records or "" """
    if topic == topics.notifications:
        return Records.NOTIFICATIONS, "notifications", "notification"
    if topic == topics.feedback:
        return Records.FEEDBACK, "feedback", "feedback"
    if (app := app_of_dead_letters(topics, topic)) is not None:
        return Records.DEAD_LETTERS, f"dead_letters_{app.replace('-', '_')}", ""
    try:
        return Records.ALERTS, f"alerts_{detector_of(topics, topic)}", "alert"
    except ValueError:
        return None

"""A stream as a value: what every process has to know of it, whichever folder or release it was read from.

`event.avsc` has the team's own fields. The platform adds its envelope: `event_id` and `event_time` before them, `raw`
(the coordinates of the raw record) after them. The trace context is a header of the record.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from pydantic import BaseModel, ConfigDict

from lozenge.apps import UPSTREAM
from lozenge.contracts.schemas import Schema, derived_id, newest, packaged, settled
from lozenge.contracts.topics import Topic, Topics, kept_for
from lozenge.durations import TextDuration
from lozenge.streams.fields import Field, fields_of, on_the_wire
from lozenge.streams.union_schema import STREAM, reader

SCHEMA_VERSION = 1
"""The version in the names of a stream's topics. Within it schemas change FULL_TRANSITIVE-compatibly alone."""
RETENTION, FUTURE_CAP = timedelta(days=7), timedelta(minutes=10)
_EVENT, _ALERT = "event.", "alert"
_TIME = {"type": "long", "logicalType": "timestamp-micros"}
_HEAD = (
    {
        "name": "event_id",
        "type": "string",
        "doc": "UUIDv5 of the source and its own transaction id; an equal id is a repeat.",
    },
    {"name": "event_time", "type": _TIME, "doc": "When it happened, UTC."},
)
_RAW = {
    "name": "raw",
    "type": {
        "type": "record",
        "name": "Raw",
        "namespace": "lozenge",
        "doc": "Topic, partition and offset of the raw record.",
        "fields": [
            {"name": "source", "type": "string", "doc": "The mapping that normalised it."},
            {"name": "topic", "type": "string", "doc": "Raw topic, or file of an archive."},
            {"name": "partition", "type": "int", "doc": "Partition, or row group."},
            {"name": "offset", "type": "long", "doc": "Offset, or row."},
            {"name": "timestamp", "type": _TIME, "doc": "The raw record's Kafka timestamp."},
        ],
    },
    "doc": "Coordinates of the raw record.",
}


class StreamDefinition(BaseModel):
    """One kind of event. `keys` are its entities and the field of each; the first one keys its topic.

    `copies` are the keys by which upstream always writes the events again. `tokens` are the fields that hold a keyed
    token, and the word that it begins with. `app` is the name of its normaliser in groups, dead letters, coverage,
    metrics and logs. `default` is whether it is meant where no stream is named. `avro` is the content of `event.avsc`;
    `raw_topics` and `sources` are those of its mappings.

    `members` are the streams whose events it carries, if it is merged of several (`lozenge.streams.merged`). Such a
    definition is for readers: upstream writes the events of its members.

    `alerts_of` is the detector whose alerts are its events, if it is one of alerts (`lozenge.streams.alert_stream`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    title: str
    owner: str
    keys: dict[str, str]
    copies: tuple[str, ...] = ()
    tokens: dict[str, str] = {}
    retention: TextDuration = RETENTION
    future_cap: TextDuration = FUTURE_CAP
    app: str = UPSTREAM
    default: bool = False
    raw_topics: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    avro: dict[str, Any]
    members: tuple["StreamDefinition", ...] = ()
    alerts_of: str = ""

    @property
    def primary(self) -> str:
        """The key of its topic."""
        return next(iter(self.keys))

    @property
    def rekeys(self) -> tuple[str, ...]:
        """The keys of the copies that its events may have."""
        return tuple(name for name in self.keys if name != self.primary)

    @property
    def fields(self) -> list[Field]:
        """The team's own, in their order."""
        return fields_of(self.avro)

    @property
    def wire_schema(self) -> dict[str, Any]:
        """The Avro schema of its records: the team's fields within the envelope."""
        return _enveloped(on_the_wire(self.avro))

    @property
    def schema_name(self) -> str:
        """By which schema topic and registry know its schema."""
        return f"{_EVENT}{self.name}"

    @property
    def schema_by_text(self) -> Schema:
        """Its schema under the id that follows from its text."""
        text = json.dumps(self.wire_schema, ensure_ascii=False, separators=(",", ":"))
        return Schema(derived_id(text), self.schema_name, SCHEMA_VERSION, text)

    @property
    def event_schema(self) -> Schema:
        """Its schema under the id that this process uses."""
        return settled(self.schema_by_text)

    @property
    def schemas(self) -> list[Schema]:
        """Those of the records in its topic, under the ids that this process uses."""
        if self.alerts_of:
            return [schema for schema in packaged() if schema.name == _ALERT]
        return [each.event_schema for each in self.members or (self,)]

    def readers(self, written: Iterable[Schema]) -> dict[Schema, Schema]:
        """As what records of the schemas `written` are read; each is a version of one of its `schemas`.

        All of the readers have the same fields, which are the columns of its events; those of an alert become them.
        """
        if self.alerts_of:
            return dict.fromkeys(written, newest(_ALERT))
        if not self.members:
            return dict.fromkeys(written, self.event_schema)
        records = [(each.name, each.avro) for each in self.members]
        found = {each.schema_name: _enveloped(reader(records, each.name)) for each in self.members}
        return {each: replace(each, text=json.dumps(found[each.name])) for each in written}

    def member(self, event: Mapping[str, Any]) -> "StreamDefinition":
        """The definition of the stream of one of its events; raises ValueError if that is none of its own."""
        if not self.members:
            return self
        for each in self.members:
            if each.name == event.get(STREAM):
                return each
        names = ", ".join(each.name for each in self.members)
        raise ValueError(f"name the stream of the event: {STREAM} is one of {names}, not {event.get(STREAM)!r}")

    @property
    def digest(self) -> str:
        """Twelve hex digits over all of it that has no default: a field that is added later changes none of them."""
        return hashlib.sha256(self.model_dump_json(exclude_defaults=True).encode()).hexdigest()[:12]

    def key(self, name: str) -> str:
        """The key that a detector means by `name`: the topic's own if that is empty."""
        return name or self.primary

    def column(self, key: str) -> str:
        """The field that holds `key`."""
        return self.keys[self.key(key)]

    def events(self, topics: Topics, key: str = "") -> str:
        """Its topic with the events keyed by `key`."""
        if self.alerts_of:
            return topics.detector(self.alerts_of).alerts
        if self.members:
            return topics.merged(self.primary)
        return topics.events(self.name, None if self.key(key) == self.primary else key)

    def topics(self, topics: Topics, copies: Collection[str]) -> list[Topic]:
        """Its topics: raw ones, events and `copies` by other keys, and what its normaliser writes next to them.

        None if it is one of alerts: those are in a topic of their detector.
        """
        if self.alerts_of:
            return []
        names = [*map(topics.prefixed, self.raw_topics), self.events(topics)]
        names += [self.events(topics, key) for key in copies]
        records = [Topic(name, topics.partitions, kept_for(self.retention)) for name in names]
        return records if self.members else [*records, *topics.normaliser(self.app)]


def is_event(schema: Schema) -> bool:
    """Whether the records of a schema are the events of a stream."""
    return schema.name.startswith(_EVENT)


def _enveloped(own: dict[str, Any]) -> dict[str, Any]:
    return own | {"fields": [*_HEAD, *own["fields"], _RAW]}

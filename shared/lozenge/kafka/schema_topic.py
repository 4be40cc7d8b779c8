"""How schema ids travel: announced in `lozenge.ctl.schemas.v1`, learned from there by running processes.

The topic is compacted, key = id, value = JSON `{id, name, version, schema}`. A writer announces a schema before its
first record with that id. A reader that meets an unknown id learns it here. No running process needs a registry.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec

from lozenge.contracts.avro import incompatibilities
from lozenge.contracts.record import Record
from lozenge.contracts.schemas import Schema, locked
from lozenge.errors import BrokerUnavailable
from lozenge.kafka.direct_write import write_directly
from lozenge.kafka.row_decoding import row_of
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.topic_reader import retained


class _Row(msgspec.Struct):
    id: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
    name: str
    version: Annotated[int, msgspec.Meta(ge=1)]
    schema: str


_ROW = msgspec.json.Decoder(_Row)


def announce(kafka: KafkaSettings, schemas: Iterable[Schema]) -> None:
    """Publishes `schemas` and returns once the broker has them; raises BrokerUnavailable."""
    topic = kafka.topics.control.schemas
    rows = [{"id": s.id, "name": s.name, "version": s.version, "schema": s.text} for s in schemas]
    records = [Record(topic, 0, str(row["id"]).encode(), json.dumps(row).encode()) for row in rows]
    if problem := write_directly(kafka, records):
        raise BrokerUnavailable(
            f"announcing schemas in {topic}: {problem}",
            hint=f"check that a broker runs at {kafka.bootstrap} and that the topic exists",
        )


def announced(kafka: KafkaSettings, events: Sequence[Schema] = ()) -> list[Schema]:
    """Every announced version of every contract, by id; none if there is no such topic. Raises BrokerUnavailable.

    `events` are the schemas of streams that have to read what is announced of them, as ours have to. A record that
    announces no schema is logged and skipped. An id never changes: its first announcement counts.
    """
    if kafka.topics.control.schemas not in partitions(kafka):
        return []
    found: dict[int, Schema] = {}

    def read(key: bytes, value: bytes) -> Schema:
        return schema_in(key, value, events)

    for message in retained(kafka, kafka.topics.control.schemas, 1):
        if message.value() is not None and (schema := row_of(message, read)) is not None:
            found.setdefault(schema.id, schema)
    return [schema for _, schema in sorted(found.items())]


def schema_in(key: bytes, value: bytes, events: Sequence[Schema] = ()) -> Schema:
    """The schema in a record of the topic; raises ValueError if it is none, or none that can be read as ours.

    A contract's schema has to be readable as the packaged one, that of a stream as the one of `events`: a field with
    another logical type, such as a time in milliseconds, would be read as another value.
    """
    row = _ROW.decode(value)
    if key != str(row.id).encode():
        raise ValueError(f"its key is {key!r}, its id is {row.id}")
    found = Schema(row.id, row.name, row.version, row.schema)
    packaged = {schema.name: schema for schema in (*locked(), *events)}  # the newest of each contract
    if (ours := packaged.get(row.name)) is not None:
        differences = incompatibilities(found, ours)
        if differences:
            raise ValueError(f"{row.name} v{row.version} cannot be read as ours: {'; '.join(differences)}")
    return found


def learn(kafka: KafkaSettings, own: Schema) -> list[Schema]:
    """Every announced version of the contract of `own`, by id; empty if none was announced."""
    return [schema for schema in announced(kafka, [own]) if schema.name == own.name]

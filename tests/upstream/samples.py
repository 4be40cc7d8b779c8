"""Raw records for the tests of upstream, and what becomes of them, all in one Spark job per call."""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from lozenge.contracts.topics import Topics
from lozenge.streams.definition import StreamDefinition
from lozenge_upstream.normalise.mapping import Mapping
from lozenge_upstream.normalise.mapping_files import load, mapping_of
from lozenge_upstream.normalise.normaliser import normalise
from lozenge_upstream.normalise.output_records import StreamOutput, outputs
from lozenge_upstream.streaming.query_builder import SPARK
from tests.streams import AUTH, AUTH_MAPPINGS

TOPICS = Topics()

NOW = datetime(2026, 3, 1, 12, 0, 0, 123000, UTC)
KEY = b"a-key-for-tests-only"
PAN = "4000001234567890"
COPIES = ("terminal", "merchant", "account", "device")


def target(*copies: str, merges: tuple[str, ...] = ()) -> StreamOutput:
    """Where authorisations go, with these copies, and merged by these keys."""
    return StreamOutput(AUTH, TOPICS, copies, merges)


PARTITIONS = dict.fromkeys((*target(*COPIES, merges=tuple(AUTH.keys)).keys, TOPICS.dead_letters("upstream")), 4)
MAPPINGS = {mapping.source: mapping for mapping in load(AUTH_MAPPINGS, AUTH)}
JSON, ISO = MAPPINGS["auth_json"], MAPPINGS["auth_iso8583"]

_SCHEMA = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int, headers array<struct<key:string,value:binary>>"
)
JSON_FIELDS = {
    "txn_id": "t-1",
    "ts": "2026-03-01T11:59:58.5Z",
    "pan": PAN,
    "account": "a-1",
    "merchant": "m-1",
    "terminal": "x-1",
    "mcc": "5411",
    "country": "DE",
    "amount": "12.50",
    "currency": "EUR",
    "channel": "pos",
    "result": "approved",
}
ISO_FIELDS = {
    "mti": "0100",
    "de2": PAN,
    "de4": "000000001250",
    "de7": "0301115958",
    "de11": "000001",
    "de18": "5411",
    "de19": "276",
    "de22": "051",
    "de37": "t-1",
    "de39": "00",
    "de41": "x-1",
    "de42": "m-1",
    "de49": "978",
}
_LEAST_FIELDS: dict[str, Any] = {
    **{name: {"transform": "constant", "value": "x"} for name in ("merchant_id", "terminal_id")},
    "event_time": {"transform": "timestamp_iso", "path": "ts"},
    "card_id": {"transform": "token", "path": "pan"},
    "mcc": {"transform": "constant", "value": "5411"},
    "country": {"transform": "constant", "value": "DE"},
    "amount": {"transform": "decimal", "path": "amount"},
    "currency": {"transform": "constant", "value": "EUR"},
    "channel": {"transform": "constant", "value": "pos"},
    "auth_result": {"transform": "constant", "value": "approved"},
}
ABSENT = object()
"""As the value of a field: leave it out."""


@dataclass(frozen=True)
class Raw:
    """A record of a raw topic as Kafka holds it."""

    value: bytes | None
    key: bytes | None = b"card"
    partition: int = 1
    offset: int = 0
    timestamp: datetime = NOW
    headers: tuple[tuple[str, bytes | None], ...] | None = None


def as_upstream(spark: SparkSession) -> SparkSession:
    """A session of the same Spark that plans as upstream's does."""
    session = spark.newSession()
    for name, value in SPARK.items():
        session.conf.set(name, value)
    return session


def least_mapping(source: str, stream: StreamDefinition = AUTH, **fields: Any) -> Mapping:
    """A mapping in which only `fields` are looked at: the others cost little to plan."""
    declared = _LEAST_FIELDS | fields
    return mapping_of({"source": source, "topic": "OTHER", "keyed_by": "", "fields": declared}, stream)


def flat(**fields: Any) -> bytes:
    """A good record of AUTH-JSON with `fields` put in."""
    return _written(JSON_FIELDS | fields)


def iso(**fields: Any) -> bytes:
    """A good record of AUTH-ISO with `fields` put in."""
    return _written(ISO_FIELDS | fields)


def normalised(spark: SparkSession, raws: Iterable[Raw], mapping: Mapping = JSON) -> list[Row]:
    """The records in order with their event's fields and `reason`; `event_micros` is the event's time."""
    rows = normalise(frame(spark, raws, mapping), mapping, KEY)
    # the time as a number, because a refused one may lie outside of Python's calendar
    return rows.selectExpr("* EXCEPT (event_time)", "unix_micros(event_time) AS event_micros").collect()


def written(
    spark: SparkSession,
    raws: Iterable[Raw],
    mapping: Mapping = JSON,
    slices: int = 1,
    rekeys: Collection[str] = ("terminal",),
    merges: tuple[str, ...] = (),
) -> list[Row]:
    """The rows for Spark's Kafka sink, from so many partitions of Spark's."""
    raw = frame(spark, raws, mapping).repartition(slices, "offset")
    return outputs(normalise(raw, mapping, KEY), mapping.source, target(*rekeys, merges=merges), PARTITIONS).collect()


def frame(spark: SparkSession, raws: Iterable[Raw], mapping: Mapping) -> DataFrame:
    """The records as Spark's Kafka source gives them."""
    rows = [
        (_bytes(r.key), _bytes(r.value), mapping.topic, r.partition, r.offset, r.timestamp, 0, _headers(r))
        for r in raws
    ]
    return spark.createDataFrame(rows, _SCHEMA)


def _headers(raw: Raw) -> list[tuple[str, bytearray | None]] | None:
    return None if raw.headers is None else [(name, _bytes(value)) for name, value in raw.headers]


def _bytes(value: bytes | None) -> bytearray | None:
    return None if value is None else bytearray(value)


def _written(fields: dict[str, Any]) -> bytes:
    return json.dumps({k: v for k, v in fields.items() if v is not ABSENT}, ensure_ascii=False).encode()

"""Spark and Python refuse the same records of a canonical topic, and say the same of them.

`FUZZ_RECORDS` are made up from `FUZZ_SEED`: some thousand here, a hundred thousand by `make fuzz`.
"""

import io
import os
from collections import Counter
from collections.abc import Callable
from datetime import UTC
from random import Random
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lozenge.errors import DecodeError
from lozenge.spark import avro
from tests.shared.contracts.example_event import EVENT as EXAMPLE
from tests.streams import AUTH, event_codec

RECORDS = int(os.environ.get("FUZZ_RECORDS", "4000"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
BATCH = 10_000
CODEC, EVENT = event_codec(), AUTH.event_schema
GOOD = EXAMPLE | {"merchant_id": "händler"}
FRAME = CODEC.encode(GOOD)
DIVIDED = (
    CODEC.encode(GOOD | {"merchant_id": "mA", "terminal_id": "Bt"}).replace(b"mA", b"m\xc3").replace(b"Bt", b"\xa4t")
)
_PLAIN = fastavro.parse_schema(
    EVENT.definition
    | {"fields": [f | ({"type": "long"} if f["name"] == "event_time" else {}) for f in EVENT.definition["fields"]]}
)


def at(micros: int) -> bytes:
    """A good frame with that event time."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _PLAIN, GOOD | {"event_time": micros})
    return FRAME[:5] + out.getvalue()


REFUSED: dict[str, tuple[bytes | None, str]] = {
    "tombstone": (None, "no Confluent header"),
    "empty": (b"", "no Confluent header"),
    "one byte": (b"\0", "no Confluent header"),
    "text": (b'{"event_id":"x"}', "no Confluent header"),
    "half a header": (b"\0\0\0\0", "no Confluent header"),
    "a header alone": (FRAME[:5], "not Avro of that schema, or cut short"),
    "of another schema": (b"\0\0\0\0\x63" + FRAME[5:], "schema id 99 is unknown"),
    "cut by one byte": (FRAME[:-1], "not Avro of that schema, or cut short"),
    "with ten bytes left over": (FRAME + b"0123456789", "bytes left over"),
    "with a whole frame left over": (FRAME * 2, "bytes left over"),
    "a text that is latin-1": (FRAME.replace("händler".encode(), b"h\xe4ndler "), "a text is no UTF-8"),
    "a character that is divided between two texts": (DIVIDED, "a text is no UTF-8"),
    "a time in the year 58134": (at(1_772_366_400_000_000_000), "after the year 9999"),
    "an amount too large": (CODEC.encode(GOOD).replace(b"\x06\xfe\x17\xb8", b"\x10" + b"\x7f" * 8), "not Avro"),
    "a string that claims a gigabyte": (FRAME[:5] + b"\x80\x80\x80\x80\x08" + FRAME[5:], "not Avro"),
    "a time before the year 1": (at(-(10**17)), "after the year 9999"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_malformed_event_is_refused_alike_by_spark_and_python(name: str, spark: SparkSession) -> None:
    value, words = REFUSED[name]
    [found] = _in_spark(spark, [value])
    assert isinstance(found, str)
    assert words in found
    with pytest.raises(DecodeError):
        CODEC.decode(value)


def test_any_bytes_are_an_event_for_spark_if_and_only_if_they_are_one_for_python(spark: SparkSession) -> None:
    random, seen = Random(SEED), Counter[str]()
    for start in range(0, RECORDS, BATCH):
        frames = [_mutated(random) for _ in range(min(BATCH, RECORDS - start))]
        for frame, found in zip(frames, _in_spark(spark, frames), strict=True):
            try:
                wanted: Any = CODEC.decode(frame)
            except DecodeError as error:
                wanted = error
            seen[type(wanted).__name__] += 1
            assert isinstance(found, str) == isinstance(wanted, DecodeError), (SEED, frame, found, wanted)
            assert isinstance(found, str) or _but_flags(found) == _but_flags(wanted), (SEED, frame)
    print(f"seed {SEED}: {seen.total()} frames, {dict(seen)}")
    assert len(seen) >= 3


def _but_flags(event: dict[str, Any]) -> dict[str, Any]:
    """Java reads a truth value of other bytes than 0 and 1 as false, and Python as true; no encoder writes one."""
    return {name: value for name, value in event.items() if not isinstance(value, bool)}


def _in_spark(spark: SparkSession, values: list[bytes | None]) -> list[str | dict[str, Any]]:
    """The event of each value, or why it is none."""
    rows = [(number, None if value is None else bytearray(value)) for number, value in enumerate(values)]
    raw = spark.createDataFrame(rows, "number int, value binary")
    read = raw.select(
        "number",
        avro.decode(F.col("value"), {EVENT: EVENT}).alias("read"),
        avro.schema_id(F.col("value")).alias("schema"),
    )
    problem = avro.problem("read", "schema", EVENT)
    found = read.select("number", problem.alias("problem"), F.when(problem.isNull(), F.col("read.record")).alias("e"))
    return [
        avro.words_of(row.problem) or row.problem if row.problem else _aware(row.e.asDict(recursive=True))
        for row in sorted(found.collect(), key=lambda row: row.number)
    ]


def _aware(record: dict[str, Any]) -> dict[str, Any]:
    """Spark's session is in UTC, and gives times without saying so."""
    record["raw"]["timestamp"] = record["raw"]["timestamp"].replace(tzinfo=UTC)
    return record | {"event_time": record["event_time"].replace(tzinfo=UTC)}


def _mutated(random: Random) -> bytes | None:
    frame = FRAME
    for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
        frame = random.choice(_CHANGES)(frame, random)
    return frame


def _flipped(frame: bytes, random: Random) -> bytes:
    if not frame:
        return frame
    where = random.randrange(len(frame))
    return frame[:where] + bytes([frame[where] ^ 1 << random.randrange(8)]) + frame[where + 1 :]


def _inserted(frame: bytes, random: Random) -> bytes:
    where = random.randrange(len(frame) + 1)
    return frame[:where] + random.randbytes(random.choice((1, 1, 2, 9))) + frame[where:]


_CHANGES: list[Callable[[bytes, Random], bytes]] = [
    *[_flipped] * 4,
    _inserted,
    lambda frame, random: frame[: random.randrange(len(frame) + 1)],
    lambda frame, random: frame + random.randbytes(random.choice((1, 10, 200))),
    lambda frame, random: frame[:5] + random.randbytes(random.randrange(200)),
    lambda frame, random: random.randbytes(random.randrange(20)),
    lambda frame, random: b'{"event_id": "x"}',
]

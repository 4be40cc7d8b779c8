"""The codec: framing, evolution both ways, and hostile bytes."""

import contextlib
import json
from decimal import Decimal
from importlib import resources
from typing import Any

import fastavro
import pytest
from fastavro.utils import generate_one
from hypothesis import given, settings
from hypothesis import strategies as st

from lozenge.contracts import schemas
from lozenge.contracts.avro import Codec, UnknownSchema
from lozenge.contracts.schemas import Schema, locked, packaged
from lozenge.errors import DecodeError, SchemaError
from tests.shared.contracts.example_event import EVENT, NOW
from tests.streams import AUTH, event_codec


def grown() -> Schema:
    definition = AUTH.event_schema.definition
    definition["fields"].append({"name": "hint", "type": ["null", "string"], "default": None})
    return Schema(77, AUTH.schema_name, 2, json.dumps(definition))


def test_a_record_survives_the_round_trip_and_carries_its_schema_id() -> None:
    data = event_codec().encode(EVENT)
    assert data[:5] == b"\x00" + AUTH.event_schema.id.to_bytes(4, "big")
    assert event_codec().decode(data) == EVENT


def test_an_old_reader_takes_a_grown_record_and_the_other_way_round() -> None:
    old, new = event_codec(), Codec(grown(), [AUTH.event_schema])
    old.learn(grown())
    assert old.decode(new.encode(EVENT | {"hint": "x"})) == EVENT
    assert new.decode(old.encode(EVENT)) == EVENT | {"hint": None}


def test_an_unknown_schema_id_is_named() -> None:
    with pytest.raises(UnknownSchema) as caught:
        event_codec().decode(Codec(grown()).encode(EVENT | {"hint": None}))
    assert caught.value.id == 77


@pytest.mark.parametrize("data", [None, b"", b"\x00", b"\x00\x00\x00\x00", b"\x01\x00\x00\x00\x01rest", b"{}"])
def test_bytes_without_the_header_are_refused(data: bytes | None) -> None:
    with pytest.raises(DecodeError):
        event_codec().decode(data)


def test_an_assigned_id_means_no_version_that_has_it_in_the_lock_file(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = sorted((s for s in locked() if s.name == "feedback"), key=lambda schema: schema.version)
    monkeypatch.setattr(schemas, "_assigned", {first.identity: second.id})
    old = Codec(first.with_id(second.id))
    said = {"alert_id": "a", "detector": "d", "release": "r", "entity": "e", "verdict": "confirmed", "author": "ann"}
    value = old.encode(said | {"note": "", "at": NOW})
    assert Codec.of("feedback").decode(value)["author"] == "ann"


def test_bytes_left_over_are_refused() -> None:
    with pytest.raises(DecodeError, match="left over"):
        event_codec().decode(event_codec().encode(EVENT) + b"x")


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_hostile_bytes_raise_a_decode_error_and_nothing_else(body: bytes) -> None:
    codec = event_codec()
    with contextlib.suppress(DecodeError):
        codec.decode(b"\x00" + AUTH.event_schema.id.to_bytes(4, "big") + body)


def test_every_packaged_schema_is_locked_and_ids_are_distinct() -> None:
    assert len({s.id for s in packaged()}) == len(packaged())
    assert {s.name for s in packaged()} == {"alert", "notification", "feedback"}


VERSIONS = [(a, b) for a in packaged() for b in packaged() if a.name == b.name and a != b]


@pytest.mark.parametrize(("written", "read"), VERSIONS, ids=lambda s: f"{s.name}.v{s.version}")
def test_every_version_reads_what_every_other_one_of_its_contract_wrote(written: Schema, read: Schema) -> None:
    record = generate_one(fastavro.parse_schema(written.definition))
    understood = Codec(read, [written]).decode(Codec(written).encode(record))
    shared = [f["name"] for f in read.definition["fields"] if f["name"] in record]
    again = Codec(written).decode(Codec(written).encode(record))
    assert {name: understood[name] for name in shared} == {name: again[name] for name in shared}
    assert understood.keys() == {f["name"] for f in read.definition["fields"]}


def test_an_edited_schema_file_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for file in ("lock.json", "alert.v1.avsc", "notification.v1.avsc"):
        text = (resources.files("lozenge.contracts.schemas") / file).read_text("utf-8")
        (tmp_path / file).write_text(text + (" " if file == "alert.v1.avsc" else ""), "utf-8")
    monkeypatch.setattr(resources, "files", lambda _: tmp_path)
    locked.cache_clear()
    try:
        with pytest.raises(SchemaError, match=r"alert\.v1\.avsc"):
            packaged()
    finally:
        monkeypatch.undo()
        locked.cache_clear()


@pytest.mark.parametrize(
    "amount", ["0", "0.0127", "0.0128", "-0.0128", "-0.0129", "99999999999999.9999", "-3.2768", "12"]
)
def test_every_amount_survives_in_the_fewest_bytes(amount: str) -> None:
    data = event_codec().encode(EVENT | {"amount": Decimal(amount)})
    assert event_codec().decode(data)["amount"] == Decimal(amount)
    unscaled = int(Decimal(amount).scaleb(4))
    fewest = next(n for n in range(1, 9) if -(2 ** (8 * n - 1)) <= unscaled < 2 ** (8 * n - 1))
    zero = len(event_codec().encode(EVENT | {"amount": Decimal(0)}))
    assert len(data) - zero == fewest - 1


@pytest.mark.parametrize("amount", ["0.00001", "100000000000000"])
def test_an_amount_that_does_not_fit_is_refused(amount: str) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        event_codec().encode(EVENT | {"amount": Decimal(amount)})

"""What the platform adds to a stream's schema and what it removes, and the id that follows from it."""

from decimal import Decimal

from lozenge.contracts.avro import Codec
from lozenge.contracts.schemas import derived_id, locked
from lozenge.streams.fields import HINTS
from tests.shared.contracts.example_event import EVENT
from tests.streams import AUTH


def test_the_envelope_surrounds_the_fields_of_the_team() -> None:
    names = [field["name"] for field in AUTH.wire_schema["fields"]]
    assert names == ["event_id", "event_time", *(field.name for field in AUTH.fields), "raw"]
    codec = Codec(AUTH.event_schema)
    assert codec.decode(codec.encode(EVENT)) == EVENT


def test_hints_are_not_on_the_wire_so_that_another_example_is_no_other_schema() -> None:
    assert not any(hint in field for field in AUTH.wire_schema["fields"] for hint in HINTS)
    fields = [field | {"example": "other"} if field["name"] == "card_id" else field for field in AUTH.avro["fields"]]
    other = AUTH.model_copy(update={"avro": AUTH.avro | {"fields": fields}})
    assert other.event_schema == AUTH.event_schema
    assert other.digest != AUTH.digest


def test_a_map_keeps_the_type_of_its_values() -> None:
    of_text = {"name": "tags", "type": {"type": "map", "values": "string"}}
    stream = AUTH.model_copy(update={"avro": AUTH.avro | {"fields": [of_text]}})
    assert stream.wire_schema["fields"][2] == of_text


def test_an_id_follows_from_the_text_and_is_none_of_a_lock_file_or_a_registry() -> None:
    assert derived_id(AUTH.event_schema.text) == AUTH.event_schema.id
    assert derived_id(AUTH.event_schema.text + " ") != AUTH.event_schema.id
    assert all(1 << 30 <= derived_id(str(number)) < 1 << 31 for number in range(1_000))
    assert max(schema.id for schema in locked()) < 1 << 30


def test_a_usual_value_is_the_declared_one_or_one_of_the_type() -> None:
    usual = {field.name: field.example for field in AUTH.fields}
    assert (usual["amount"], usual["channel"], usual["account_id"]) == (Decimal(10), "pos", "account-1")
    bare = {"fields": [{"name": "shop_id", "type": "string"}, {"name": "n", "type": ["null", "int"], "default": None}]}
    stream = AUTH.model_copy(update={"avro": AUTH.avro | bare})
    assert [field.example for field in stream.fields] == ["shop-1", None]

"""Several streams as one: the union of their fields, what does not fit together, and the topic by their key."""

from datetime import timedelta
from typing import Any

import pytest

from lozenge.contracts.avro import Codec
from lozenge.contracts.schemas import Schema
from lozenge.contracts.topics import Topics
from lozenge.errors import ConfigError
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.folder import read, write_copy
from lozenge.streams.merged import common_keys, merged, merged_topics
from lozenge.streams.project import Streams
from tests.merged_streams import BY_ACCOUNT, BY_CARD, SIGN_IN, sign_in
from tests.streams import AUTH

TOPICS = Topics("acme.", 6)


def changed(field: dict[str, Any], **more: Any) -> StreamDefinition:
    """The stream of sign-ins with another field of that name, or with one more."""
    others = [each for each in SIGN_IN.avro["fields"] if each["name"] != field["name"]]
    return SIGN_IN.model_copy(update={"avro": SIGN_IN.avro | {"fields": [*others, field]}, **more})


def problems(*members: StreamDefinition, key: str = "account") -> str:
    with pytest.raises(ConfigError) as refused:
        merged(members, key)
    return "\n".join(refused.value.problems)


def test_it_has_the_fields_of_all_and_each_may_be_null() -> None:
    assert [field.name for field in BY_ACCOUNT.fields] == [
        "stream",
        *(field.name for field in AUTH.fields),
        *("result", "attempts", "device"),
    ]
    assert [field.name for field in BY_ACCOUNT.fields if not field.optional] == ["stream"]
    assert {field.name: field.pattern for field in BY_ACCOUNT.fields}["mcc"] == "[0-9]{4}"
    assert (BY_ACCOUNT.name, BY_ACCOUNT.key(""), BY_ACCOUNT.column("")) == ("auth+sign_in", "account", "account_id")
    assert BY_ACCOUNT.retention == timedelta(days=3), "what all of them keep"


def test_its_topic_is_that_of_the_key_whichever_streams_are_read() -> None:
    assert BY_CARD.events(TOPICS, "card") == BY_CARD.events(TOPICS) == "acme.pay.merged.by-card.v1"
    [topic] = BY_CARD.topics(TOPICS, ())
    assert (topic.name, topic.partitions) == ("acme.pay.merged.by-card.v1", 6)


def test_a_merged_topic_keeps_what_any_of_its_streams_keeps() -> None:
    [topic] = merged_topics(TOPICS, [SIGN_IN, AUTH], ["card"])
    assert topic.config["retention.ms"] == str(7 * 24 * 3600 * 1000)
    assert [each.name for each in merged_topics(TOPICS, [SIGN_IN], ["card", "terminal"])] == [topic.name]


def test_streams_have_a_common_key_if_its_field_has_one_name() -> None:
    assert common_keys(AUTH, [AUTH, SIGN_IN]) == ("card", "account")
    assert common_keys(AUTH, [AUTH]) == ()
    other = SIGN_IN.model_copy(update={"keys": {"account": "user_id", "card": "card_id"}})
    assert common_keys(other, [AUTH, other]) == common_keys(AUTH, [AUTH, other]) == ("card",)


@pytest.mark.parametrize("stream", [AUTH, SIGN_IN])
def test_each_stream_has_a_reader_of_the_same_fields_that_knows_its_name(stream: StreamDefinition) -> None:
    readers = BY_ACCOUNT.readers(BY_ACCOUNT.schemas)
    reader = readers[stream.event_schema].definition
    assert f"{reader['namespace']}.{reader['name']}" == stream.event_schema.record_name
    assert [field["name"] for field in reader["fields"]] == [f["name"] for f in BY_ACCOUNT.wire_schema["fields"]]
    assert next(f["default"] for f in reader["fields"] if f["name"] == "stream") == stream.name
    assert len({frozenset(schema.leaves.items()) for schema in readers.values()}) == 1


def test_a_record_is_read_as_the_union_by_any_implementation_of_avro() -> None:
    schema = SIGN_IN.event_schema
    codec = Codec(BY_ACCOUNT.readers([schema])[schema], [schema])
    event = sign_in(1)
    assert codec.decode(Codec(schema).encode(event)) == {
        **dict.fromkeys(field.name for field in BY_ACCOUNT.fields),
        **event,
        "stream": "sign_in",
    }


def test_a_later_version_of_a_stream_is_read_as_its_own() -> None:
    later = Schema(901, SIGN_IN.schema_name, 1, changed({"name": "risk", "type": "int"}).event_schema.text)
    assert BY_ACCOUNT.readers([later])[later].record_name == "identity.SignIn"


def test_types_of_one_name_in_two_streams_do_not_meet() -> None:
    other = {"type": "record", "name": "Device", "fields": [{"name": "serial", "type": "string"}]}
    third = AUTH.model_copy(
        update={
            "name": "third",
            "avro": SIGN_IN.avro
            | {"name": "Third", "fields": [SIGN_IN.avro["fields"][0], {"name": "gadget", "type": other}]},
            "keys": {"account": "account_id"},
            "tokens": {},
        }
    )
    of = merged([SIGN_IN, third], "account")
    for schema, reader in of.readers(of.schemas).items():
        Codec(reader, [schema])  # it parses, so no type is defined twice


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        (changed({"name": "amount", "type": "double"}), "amount is decimal(18,4) in auth and double in sign_in: give"),
        (changed({"name": "mcc", "type": "int"}), "mcc is string in auth and int in sign_in"),
        (changed({"name": "Amount", "type": "int"}), "auth has a field amount and sign_in has Amount: upper and"),
        (SIGN_IN.model_copy(update={"keys": {"card": "card_id"}}), "sign_in has no key account, only card"),
        (
            SIGN_IN.model_copy(update={"keys": {"account": "card_id"}}),
            "the key account is the field account_id in auth and card_id in sign_in: name both fields alike",
        ),
        (
            SIGN_IN.model_copy(update={"tokens": {}}),
            "card_id is a token of card in auth and no token in sign_in: they never equal each other",
        ),
        (AUTH, "auth is named twice"),
    ],
)
def test_what_does_not_fit_together_is_named_with_both_streams(other: StreamDefinition, problem: str) -> None:
    assert problem in problems(AUTH, other)


def test_a_part_that_is_a_token_in_one_of_them_is_named_by_its_names() -> None:
    tokens = SIGN_IN.tokens | {"device.model": "model"}
    found = problems(SIGN_IN, SIGN_IN.model_copy(update={"name": "other", "tokens": tokens}))
    assert "device.model is no token in sign_in and a token of model in other" in found


def test_enums_of_other_symbols_do_not_fit_together() -> None:
    enum = {"type": "enum", "name": "Result", "symbols": ["passed"]}
    other = changed({"name": "result", "type": enum}, name="other")
    assert "result is enum in sign_in and another enum in other" in problems(SIGN_IN, other)


def test_all_problems_are_named_at_once() -> None:
    other = changed({"name": "amount", "type": "double"}, keys={"card": "card_id"}, tokens={})
    assert len(problems(AUTH, other).splitlines()) == 3


def test_documents_and_names_of_types_and_hints_are_no_difference() -> None:
    field = {"name": "country", "type": {"type": "string"}, "doc": "Where."}
    assert merged([AUTH, changed(field)], "account").fields == BY_ACCOUNT.fields


def test_a_release_has_a_copy_of_each_member(tmp_path: Any) -> None:
    write_copy(BY_ACCOUNT, tmp_path)
    assert read(tmp_path / "sign_in") == SIGN_IN
    assert Streams.of(tmp_path).definitions == (AUTH, SIGN_IN)
    assert StreamDefinition.model_validate_json(BY_ACCOUNT.model_dump_json()) == BY_ACCOUNT
    assert len({BY_ACCOUNT.digest, BY_CARD.digest, AUTH.digest}) == 3

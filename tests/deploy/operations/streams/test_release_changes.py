"""What one release of a stream changes, and what must not follow another one in the same topics."""

from typing import Any

import pytest

from lozenge.contracts.topics import Topics
from lozenge.protocol.stream_releases import ReleaseId
from lozenge.streams.definition import StreamDefinition
from lozenge_deploy.operations.streams.release_changes import changes, refusals, topics_of
from tests.streams import AUTH

OPTIONAL = {"name": "note", "type": ["null", "string"], "default": None}


def with_field(field: dict[str, Any]) -> StreamDefinition:
    return AUTH.model_copy(update={"avro": AUTH.avro | {"fields": [*AUTH.avro["fields"], field]}})


def test_an_optional_field_and_another_key_may_follow() -> None:
    later = with_field(OPTIONAL).model_copy(update={"keys": AUTH.keys | {"mcc": "mcc"}, "title": "Other"})
    assert refusals({"r1": AUTH, "r2": AUTH}, later) == []


@pytest.mark.parametrize(
    ("later", "problem"),
    [
        (with_field({"name": "note", "type": "string"}), "event.avsc: note is new"),
        (AUTH.model_copy(update={"keys": {"merchant": "merchant_id"} | AUTH.keys}), "stream.toml: the first key is"),
        (
            AUTH.model_copy(update={"keys": {k: c for k, c in AUTH.keys.items() if k != "merchant"}}),
            "stream.toml: the key merchant of r1 is gone",
        ),
        (AUTH.model_copy(update={"keys": AUTH.keys | {"merchant": "mcc"}}), "stream.toml: the key merchant is mcc"),
        (AUTH.model_copy(update={"app": "upstream-auth"}), "stream.toml: app is upstream-auth, and was upstream in r1"),
        (AUTH.model_copy(update={"tokens": {"card_id": "pan"}}), "stream.toml: tokens of card_id begin with pan"),
    ],
)
def test_what_readers_of_earlier_releases_would_misread_is_refused(later: StreamDefinition, problem: str) -> None:
    [found] = refusals({"r1": AUTH}, later)
    assert found.startswith(problem)


def test_each_change_is_a_row_with_what_is_now_and_what_will_be() -> None:
    later = with_field(OPTIONAL).model_copy(update={"owner": "ann"})
    before = {"stream.toml": "a\nb\n", "mappings/x.toml": "1\n", "event.avsc": "{}"}
    after = {"stream.toml": "a\nc\nd\n", "mappings/y.toml": "1\n", "event.avsc": "{}"}
    rows = changes(ReleaseId("r1", "d1"), ReleaseId("r2", "d2"), (before, after), (AUTH, later), ["WALLET"])
    assert {row["field"]: (row["current"], row["new"]) for row in rows[:-1]} == {
        "release": ("r1 d1", "r2 d2"),
        "mappings/x.toml": ("-1 lines", "removed"),
        "mappings/y.toml": (None, "+1 lines"),
        "stream.toml": ("-1 lines", "+2 lines"),
        "owner": (AUTH.owner, "ann"),
        "field note": (None, "string"),
        "topic": (None, "WALLET is created"),
    }
    assert rows[-1]["field"] == "offsets"


def test_the_first_release_has_nothing_to_be_compared_with() -> None:
    rows = changes(None, ReleaseId("r1", "d1"), ({}, {"stream.toml": "a"}), (None, AUTH), [])
    assert [row["field"] for row in rows] == ["release", "stream.toml", "offsets"]
    assert rows[0]["current"] is None


def test_a_release_needs_its_raw_topics_its_events_its_copies_and_those_of_its_normaliser() -> None:
    topics = Topics("acme.")
    names = {*topics_of(AUTH, topics)}
    assert names >= {"acme.AUTH-JSON", "acme.AUTH-ISO", *(topics.events("auth", key) for key in (None, *AUTH.copies))}
    assert names >= {topics.dead_letters("upstream"), topics.detector("upstream").coverage}

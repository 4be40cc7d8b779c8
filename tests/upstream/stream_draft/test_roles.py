"""The time, the id and the keys of an event are guessed where one field can be it; else a person says."""

import pytest

from lozenge.errors import UsageError
from lozenge_upstream.stream_draft import roles
from lozenge_upstream.stream_draft.raw_records import observed, records_in

ISO = "2026-03-01T12:00:00Z"


def fields(*records: str) -> tuple[object, int]:
    read = records_in("\n".join(records).encode())
    return observed(read), len(read)


def time_of(*records: str, given: str = "", zone: str = "") -> str:
    found, count = fields(*records)
    return roles.event_time(found, count, given, zone)[0]  # type: ignore[arg-type]


def test_the_only_time_of_every_record_is_the_time_of_the_event() -> None:
    assert time_of(f'{{"a": "{ISO}", "b": 5}}') == "a"
    assert time_of('{"meta": {"at": 1772366400123}, "n": 1772366400123}') == "meta.at"
    assert time_of(f'{{"a": "{ISO}", "b": "{ISO}"}}', f'{{"a": "{ISO}"}}') == "a"


@pytest.mark.parametrize(
    ("record", "given", "zone", "problem", "hint"),
    [
        (f'{{"a": "{ISO}", "b": "{ISO}"}}', "", "", "a and b could each be the time", "--time a"),
        ('{"a": 5}', "", "", "no field has a time in every record", "--time FIELD"),
        ('{"a": 5}', "b", "", "the records have no field b", "they have a"),
        ('{"a": "soon"}', "a", "", "a is no time in ISO 8601 and no epoch: it has soon", "docs/mappings.md"),
        ('{"a": "2026-03-01T12:00:00"}', "a", "", "the times of a have no offset", "--zone UTC"),
    ],
)
def test_what_is_not_plain_is_an_error_with_what_to_pass(
    record: str, given: str, zone: str, problem: str, hint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        time_of(record, given=given, zone=zone)
    assert problem in str(caught.value)
    assert hint in caught.value.hint


def test_a_field_may_be_named_by_its_path_or_by_its_name_in_the_event() -> None:
    record = f'{{"eventAt": "{ISO}", "x": "{ISO}"}}'
    assert time_of(record, given="eventAt") == time_of(record, given="event_at") == "eventAt"
    assert time_of('{"a": "2026-03-01T12:00:00"}', given="a", zone="UTC") == "a"


def id_of(*records: str, given: str | None = None) -> str | None:
    found, count = fields(*records)
    return roles.own_id(found, count, given, ["uuid"])  # type: ignore[arg-type]


def test_all_names_that_lead_nowhere_are_said_at_once() -> None:
    found, _ = fields(f'{{"a": "{ISO}", "b": "x"}}')
    roles.refuse_unknown(found, {"--time": ["a"], "--id": [], "--key": ["b"]})  # type: ignore[arg-type]
    with pytest.raises(UsageError) as raised:
        roles.refuse_unknown(found, {"--time": ["nope"], "--key": ["b", "who"]})  # type: ignore[arg-type]
    assert str(raised.value).splitlines() == [
        "drafting a stream: several names",
        "  - --time: the records have no field nope",
        "  - --key: the records have no field who",
        "  -> they have a, b",
    ]


def test_the_id_of_a_record_has_the_name_of_one_and_is_another_in_each() -> None:
    assert id_of('{"id": 1}', '{"id": 2}') == "id"
    assert id_of('{"event_id": "a"}') == "event_id"
    assert id_of('{"id": 1}', '{"id": 1}') is None
    assert id_of('{"user_id": 1}') is None
    assert id_of('{"id": 1, "user_id": 2}', given="user_id") == "user_id"
    assert id_of('{"id": 1}', given="none") is None
    assert id_of('{"user": {"id": 1}}') is None
    assert id_of('{"id": 1, "uuid": "x"}') == "id", "the other is a key"
    with pytest.raises(UsageError, match="id and txn_id could each be the id"):
        id_of('{"id": 1, "txn_id": "x"}')


def keys_of(*records: str, **given: str) -> dict[str, str]:
    found, count = fields(*records)
    return roles.keys(found, count, given, ["id"])  # type: ignore[arg-type]


def test_the_only_field_that_names_something_is_the_key() -> None:
    assert keys_of('{"id": 1, "userId": 7, "note_id": null}') == {"user": "userId"}
    assert keys_of('{"a_id": 1, "b_id": 7}', b="b_id", a="a_id") == {"b": "b_id", "a": "a_id"}
    with pytest.raises(UsageError, match="a_id and b_id could each key its events") as caught:
        keys_of('{"a_id": 1, "b_id": 7}')
    assert "--key a=a_id" in caught.value.hint
    with pytest.raises(UsageError, match="no field names what its events are of"):
        keys_of('{"id": 1}')

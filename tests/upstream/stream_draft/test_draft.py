"""A draft of values alone: what is a field of the event itself, and what its mapping has refused is changed."""

import json
from typing import Any

from lozenge_upstream.stream_draft.draft import DraftRequest, StreamDraft, drafted, revised
from lozenge_upstream.stream_draft.field_guess import FieldGuess
from lozenge_upstream.stream_draft.raw_records import records_in

RECORD: dict[str, Any] = {
    "meta": {"at": "2026-03-01T12:00:00Z", "event": {"id": "e-1"}},
    "user": {"user_id": "u-1", "until": "2030-01-01T00:00:00Z"},
    "notes": [{"text": "paid"}],
    "by": {"u-17": {"n": 1}},
    "names": {"u-17": "a"},
}


def draft(**given: Any) -> StreamDraft:
    asked = {"name": "orders", "source": "web", "topic": "WEB", "owner": "shop", "keys": {"user": "user.user_id"}}
    request = DraftRequest(**(asked | {"own_id": "meta.event.id", "time": "meta.at"} | given))
    return drafted(request, records_in(json.dumps(RECORD).encode()))


def field(of: StreamDraft, name: str) -> FieldGuess:
    return next(each for each in of.fields if each.name == name)


def test_time_id_and_key_are_no_parts_of_the_record_in_which_the_source_has_them() -> None:
    found = draft()
    assert (found.time["path"], found.own_id, found.keys) == ("meta.at", "meta.event.id", {"user": "user_user_id"})
    assert [each.name for each in found.mapped] == ["user_user_id", "user", "notes", "by", "names"]
    assert [part.name for part in field(found, "user").parts] == ["until"]


def test_a_card_number_as_a_name_is_no_path_and_a_note_masks_it() -> None:
    card = "4000000000000002"
    record = RECORD | {card: "x", "seen": {card: {"n": 1}}, "mine": {f"{card}_id": 1, "n": 2}}
    asked = DraftRequest(
        "orders", "web", "WEB", "shop", {"user": "user.user_id"}, own_id="meta.event.id", time="meta.at"
    )
    found = drafted(asked, records_in(json.dumps(record).encode()))
    assert card not in repr(found)
    assert [part.name for part in field(found, "mine").parts] == ["n"]
    notes = [note for note in found.said if "card number" in note]
    assert notes == [
        "400000******0002 is not mapped: its name holds a card number",
        "400000******0002_id is not mapped: its name holds a card number",
    ]


def test_what_the_mapping_refuses_within_is_changed_there() -> None:
    found = revised(draft(), ["future:user.until", "pan:notes.text", "pan:names", "missing:by.n"])
    assert field(found, "user").parts[0].kind == "string"
    [element] = field(found, "notes").parts
    assert element.transform is not None
    assert element.transform["fields"]["text"]["card_numbers"] == "mask"
    names = field(found, "names").transform
    assert names is not None
    assert names["of"]["card_numbers"] == "mask"
    assert field(found, "by") == field(draft(), "by")
    again = revised(found, ["pan:names"])
    assert field(again, "names").transform is None


def test_a_map_whose_names_are_refused_is_not_mapped() -> None:
    by = field(revised(draft(), ["pan:by"]), "by")
    assert (by.transform, by.all_notes[0]) == (
        None,
        "by is not mapped: some of its names are none that a map takes (pan)",
    )

"""What `lozenge peek` makes of a record's value."""

from datetime import UTC, datetime

import pytest

from lozenge.contracts import schemas
from lozenge.contracts.avro import Codec
from lozenge.contracts.schemas import newest
from lozenge_deploy.observe.topic_tail import decoded

VERDICT = {
    "alert_id": "a1",
    "detector": "large_amount",
    "release": "r1",
    "entity": "card:card-7",
    "verdict": "snooze",
    "author": "ann",
    "note": "called them",
    "at": datetime(2026, 3, 1, 12, tzinfo=UTC),
    "snoozed_until": datetime(2026, 3, 8, 12, tzinfo=UTC),
}
SHOWN = VERDICT | {"at": "2026-03-01T12:00:00+00:00", "snoozed_until": "2026-03-08T12:00:00+00:00"}


def test_a_verdict_is_shown_as_data() -> None:
    assert decoded(Codec.of("feedback").encode(VERDICT)) == SHOWN


def test_an_assigned_id_comes_before_the_same_id_of_the_lock_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "_assigned", {("feedback", newest("feedback").version): newest("alert").id})
    assert decoded(Codec.of("feedback").encode(VERDICT)) == SHOWN


@pytest.mark.parametrize("value", [b"\x00", b"\x00\x00\x00\x00\x63rest"])
def test_what_no_schema_decodes_is_shown_in_hex(value: bytes) -> None:
    assert decoded(value) == value.hex()

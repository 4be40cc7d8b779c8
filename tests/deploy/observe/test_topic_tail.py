"""What `lozenge peek` makes of a record's value."""

from datetime import UTC, datetime

from lozenge.contracts.avro import Codec
from lozenge_deploy.observe.topic_tail import decoded


def test_a_verdict_is_shown_as_data() -> None:
    said = {
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
    shown = decoded(Codec.of("feedback").encode(said))
    assert shown == said | {"at": "2026-03-01T12:00:00+00:00", "snoozed_until": "2026-03-08T12:00:00+00:00"}

"""Each alert of an aggregate is emitted once, and each of its ids is written once."""

from datetime import UTC, datetime, timedelta

from lozenge.contracts.topics import Topics
from lozenge.detector.events import Alert
from lozenge.job.batch_result import DraftAlert
from lozenge.job.identity import Identity
from lozenge.job.operators.emitted_alerts import RETENTION, EmittedAlerts
from tests.streams import AUTH

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def emitted_alerts() -> EmittedAlerts:
    return EmittedAlerts(Identity("counts", "r1", live=True, key="card", topics=Topics(), stream=AUTH), 4)


def draft(card: str, band: str = "3", closes: datetime = NOON) -> DraftAlert:
    return DraftAlert(Alert(reason="seen"), card, f"0/{band}", NOON, closes)


def test_an_alert_is_new_once() -> None:
    emitted = emitted_alerts()
    assert emitted.id_of("a", "0/3") not in emitted
    assert emitted.add([draft("a"), draft("a"), draft("b")]) == [draft("a"), draft("b")]
    assert emitted.id_of("a", "0/3") in emitted
    assert emitted.id_of("a", "0/5") not in emitted
    assert emitted.add([draft("a"), draft("a", "5")]) == [draft("a", "5")]


def test_a_row_without_entity_or_key_was_not_emitted() -> None:
    emitted = emitted_alerts()
    emitted.add([draft("a")])
    assert emitted.id_of(None, "0/3") not in emitted
    assert emitted.id_of("a", None) not in emitted


def test_unwritten_ids_are_written_by_the_operator_that_adopts_them() -> None:
    first, second = emitted_alerts(), emitted_alerts()
    first.add([draft("a")])
    assert second.adopt_state(first) == 1
    assert second.add([draft("a"), draft("b")]) == [draft("b")]
    assert len(second.state_changes()) == 2
    assert second.state_changes() == []


def test_an_id_expires_long_after_its_window() -> None:
    emitted = emitted_alerts()
    emitted.add([draft("a")])
    [written] = emitted.state_changes()
    emitted.add([draft("b", closes=NOON + RETENTION + timedelta(seconds=1))])
    assert emitted.id_of("a", "0/3") not in emitted
    assert [record.value is None for record in emitted.state_changes() if record.key == written.key] == [True]

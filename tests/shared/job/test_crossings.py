"""Each crossing is told once, and what remembers it is written by whichever host comes to that."""

from datetime import UTC, datetime, timedelta

from lozenge.detector.events import Alert
from lozenge.job.batch_result import DraftAlert
from lozenge.job.identity import Identity
from lozenge.job.operators.emitted_alerts import RETENTION, EmittedAlerts

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def crossings() -> EmittedAlerts:
    return EmittedAlerts(Identity("counts", "r1", live=True, key="card"), 4)


def found(card: str, band: str = "3", closes: datetime = NOON) -> DraftAlert:
    return DraftAlert(Alert(reason="seen"), card, f"0/{band}", NOON, closes)


def test_a_crossing_is_new_once() -> None:
    host = crossings()
    assert host.id_of("a", "0/3") not in host
    assert host.add([found("a"), found("a"), found("b")]) == [found("a"), found("b")]
    assert host.id_of("a", "0/3") in host
    assert host.id_of("a", "0/5") not in host
    assert host.add([found("a"), found("a", "5")]) == [found("a", "5")]


def test_what_names_no_crossing_is_none_that_was_told() -> None:
    host = crossings()
    host.add([found("a")])
    assert host.id_of(None, "0/3") not in host
    assert host.id_of("a", None) not in host


def test_what_was_not_written_yet_is_written_by_the_host_that_inherits() -> None:
    first, second = crossings(), crossings()
    first.add([found("a")])
    assert second.adopt_state(first) == 1
    assert second.add([found("a"), found("b")]) == [found("b")]
    assert len(second.state_changes()) == 2
    assert second.state_changes() == []


def test_it_is_forgotten_long_after_its_window() -> None:
    host = crossings()
    host.add([found("a")])
    [written] = host.state_changes()
    host.add([found("b", closes=NOON + RETENTION + timedelta(seconds=1))])
    assert host.id_of("a", "0/3") not in host
    assert [record.value is None for record in host.state_changes() if record.key == written.key] == [True]

"""Each crossing is told once, and what remembers it is written by whichever host comes to that."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from lozenge.detector.definition import Settings
from lozenge.detector.events import Alert
from lozenge.detector.manifest import read
from lozenge.job.commit.alert_encoder import AlertEncoder, Finding
from lozenge.job.identity import Identity
from lozenge.job.operators.emitted_alerts import KEPT, EmittedAlerts

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DECLARATION = read(Path(__file__).parents[3] / "detectors" / "card_velocity" / "pyproject.toml")[2]


def crossings() -> EmittedAlerts:
    return EmittedAlerts(
        AlertEncoder(Identity("counts", "r1", live=True, key="card"), DECLARATION, Settings()), "state", 4
    )


def found(card: str, band: str = "3", closes: datetime = NOON) -> Finding:
    return Finding(Alert(reason="seen"), card, f"0/{band}", NOON, closes)


def test_a_crossing_is_new_once() -> None:
    host = crossings()
    assert not host.remembers(host.id_of("a", "0/3"))
    assert host.judge([found("a"), found("a"), found("b")]) == [found("a"), found("b")]
    assert host.remembers(host.id_of("a", "0/3"))
    assert not host.remembers(host.id_of("a", "0/5"))
    assert host.judge([found("a"), found("a", "5")]) == [found("a", "5")]


def test_what_names_no_crossing_is_none_that_was_told() -> None:
    host = crossings()
    host.judge([found("a")])
    assert not host.remembers(host.id_of(None, "0/3"))
    assert not host.remembers(host.id_of("a", None))


def test_what_was_not_written_yet_is_written_by_the_host_that_inherits() -> None:
    first, second = crossings(), crossings()
    first.judge([found("a")])
    assert second.inherit(first) == 1
    assert second.judge([found("a"), found("b")]) == [found("b")]
    assert len(second.changes()) == 2
    assert second.changes() == []


def test_it_is_forgotten_long_after_its_window() -> None:
    host = crossings()
    host.judge([found("a")])
    [written] = host.changes()
    host.judge([found("b", closes=NOON + KEPT + timedelta(seconds=1))])
    assert not host.remembers(host.id_of("a", "0/3"))
    assert [record.value is None for record in host.changes() if record.key == written.key] == [True]

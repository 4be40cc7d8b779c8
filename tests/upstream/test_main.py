"""The exit code says who has to act, and standard error says it in one sentence."""

import pytest
from structlog.testing import capture_logs

from lozenge.errors import BrokerUnavailable, ConfigError, Fenced, LozengeError
from lozenge.process import logging
from lozenge_upstream import __main__ as program


@pytest.fixture(autouse=True)
def _logs_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logging keeps its configuration, which outlives the captured stderr of a test."""
    monkeypatch.setattr(logging, "configure", lambda *app, **context: None)


@pytest.mark.parametrize(
    ("error", "code", "level"),
    [
        (BrokerUnavailable("no Kafka broker answers", hint="start it"), 3, "error"),
        (ConfigError("reading the mappings", hint="correct it"), 2, "error"),
        (LozengeError("the query failed", hint="restart it"), 1, "error"),
        (Fenced("other instances own its partitions now", hint="nothing was written"), 1, "warning"),
    ],
)
def test_an_error_ends_upstream_with_one_sentence(
    monkeypatch: pytest.MonkeyPatch, error: LozengeError, code: int, level: str
) -> None:
    def fail(*settings: object) -> None:
        raise error

    monkeypatch.setattr(program, "run", fail)
    with capture_logs() as said:
        assert program.main() == code
    kind = type(error).__name__
    assert said == [{"event": error.message, "hint": error.hint, "kind": kind, "log_level": level}]


def test_a_stop_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "run", lambda *settings: None)
    assert program.main() == 0


def test_settings_that_are_wrong_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOZENGE_UPSTREAM_MODE", "sometimes")
    with capture_logs() as said:
        assert program.main() == 2
    assert "LOZENGE_UPSTREAM_MODE" in said[0]["event"]

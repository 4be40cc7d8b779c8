"""What reaches a terminal: nothing that acts on it, on whatever way it gets there."""

import ast
import json
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import lozenge_deploy.cli
from lozenge.errors import LozengeError
from lozenge_deploy.cli import __main__ as command
from lozenge_deploy.cli import logs, status, why
from lozenge_deploy.cli.author import dev
from lozenge_deploy.cli.printing import output, terminal
from lozenge_deploy.cli.printing.output import MOST_CHARACTERS, OutputFormat
from lozenge_deploy.cli.wait import _Progress

HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07\x1b]8;;http://x\x07click\x1b]8;;\x07 \x9b31m \x85 \x7f \r2026 false \u202etxt.exe"
    " \u2066 \u200b \ufeff \u2028 \ud800 \U000e0001"
)
CARD, LOGIN = "4000 0000 0000 0002", "https://me:pass@registry"
SENSITIVE = f"x {CARD}, {LOGIN}, Bearer 0123456789abcdef"
FOLDER = Path(lozenge_deploy.cli.__file__).parent
PEOPLE = [OutputFormat.TABLE, OutputFormat.WIDE]


def is_harmless(text: str) -> bool:
    return all(c == "\n" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in text)


def test_a_character_that_acts_is_written_as_an_escape() -> None:
    assert terminal.visible("\x1b[2J\x07\x9b \u202e\ud800") == r"\x1b[2J\x07\x9b \u202e\ud800"
    assert is_harmless(terminal.visible(HOSTILE))


@pytest.mark.parametrize("text", ["größer 😀", "商店 № 5", "مرحبا", "a\u00a0b", "12.50 €", "C:\\folder", ""])
def test_text_of_any_language_stays_as_it_is(text: str) -> None:
    assert terminal.visible(text) == text


def test_a_line_break_within_a_value_is_no_line() -> None:
    assert terminal.visible("a\nb\tc") == r"a\nb\tc"
    assert terminal.visible("a\nb\tc", lines=True) == "a\nb\tc"


def deployed_row() -> dict[str, Any]:
    return {
        **dict.fromkeys(("guarantee", "fenced", "generation", "batch", "committed_lag", "alerts_last_hour")),
        **dict.fromkeys(("repeats", "output_ahead", "catch_up_seconds")),
        "app": HOSTILE,
        "release": HOSTILE,
        "phase": HOSTILE,
        "instances": 1,
        "lag_grows": False,
        "restarts": 0,
        "dead_letters": 0,
        "lag": 0,
        "reported_seconds_ago": 0,
    }


BACKTEST = {
    "release": HOSTILE,
    "new": [{"event_time": HOSTILE, "entity": HOSTILE, "reason": HOSTILE}],
    "lost": [],
    "dead_letters": [HOSTILE],
    "alerts": 1,
    "events": 1,
    "since": HOSTILE,
    "oldest": HOSTILE,
    "notes": [HOSTILE],
}
LINE = dict.fromkeys(("time", "level", "event", "instance", "release", "exception", HOSTILE), HOSTILE)
DELIVERY = {"attempts": 1, "state": HOSTILE, "error": HOSTILE, "due_at": 0.0, "channel": HOSTILE}
RECEIVED = {"received_at": 0.0, "outcome": HOSTILE, "reason": HOSTILE, "topic": HOSTILE, "partition": 0, "offset": 0}
NOTIFIED = {
    "topic": HOSTILE,
    "partition": 0,
    "seq": 1,
    "created_at": 0.0,
    "notification_id": HOSTILE,
    "routing": HOSTILE,
}
CASE = {
    "route": HOSTILE,
    "group": {HOSTILE: HOSTILE},
    "opened_at": 0.0,
    "case_id": HOSTILE,
    "muted": HOSTILE,
    "next_evaluation_at": 0.0,
    "notification": NOTIFIED | {"routing": HOSTILE, "failed_attempts": [], "deliveries": [DELIVERY]},
}
TRACED = {
    "received_alerts": [RECEIVED],
    "muted": [{"at": 0.0, "reason": HOSTILE, "route": HOSTILE}],
    "cases": [CASE],
    "feedback": [{"at": 0.0, "verdict": HOSTILE, "note": HOSTILE, "author": HOSTILE}],
}
ALERT = {
    "event_time": datetime(2026, 3, 1, tzinfo=UTC),
    "entity": {"id": HOSTILE},
    "severity": HOSTILE,
    "reason": HOSTILE,
}
PATHS: dict[str, Callable[[OutputFormat], object]] = {
    "a table": lambda how: output.show([{"key": HOSTILE, HOSTILE: {HOSTILE: [HOSTILE]}}, {"other": HOSTILE}], how),
    "a narrow table": lambda how: output.show([{HOSTILE: HOSTILE * 20, "b": HOSTILE * 20}], how),
    "fields": lambda how: output.show_fields({HOSTILE: HOSTILE, "headers": {HOSTILE: HOSTILE}}, how),
    "a readable table": lambda how: output.show_readable(
        [{"group": {HOSTILE: HOSTILE}, "channels": [HOSTILE]}], how, HOSTILE
    ),
    "nothing": lambda how: output.show_readable([], how, HOSTILE),
    "a sentence": lambda how: output.say(HOSTILE, {"said": HOSTILE}, how),
    "a backtest": lambda how: output.show_backtest(BACKTEST, 5, how),
    "a cost": lambda how: output.show_cost({"new": 1.0, "current": 2.0, "ratio": 0.5}, HOSTILE),
    "a log line": lambda how: logs._print(LINE, how),
    "a status": lambda how: terminal.echo(status._summary(deployed_row())),
    "a trace": lambda how: output.show(why._steps(TRACED), how),
    "an alert of dev": lambda how: terminal.echo(dev._line(ALERT)),
    "progress": lambda how: _Progress().report(SimpleNamespace(phase=HOSTILE, reason=HOSTILE)),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("how", OutputFormat)
@pytest.mark.parametrize("path", PATHS)
def test_no_way_of_printing_lets_a_sequence_through(
    path: str, how: OutputFormat, capsys: pytest.CaptureFixture[str]
) -> None:
    PATHS[path](how)
    printed = capsys.readouterr()
    assert is_harmless(printed.out + printed.err)
    assert printed.out + printed.err


@pytest.mark.parametrize("how", OutputFormat)
@pytest.mark.parametrize("path", PATHS)
def test_no_way_of_printing_shows_a_card_number_or_a_secret(
    path: str, how: OutputFormat, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = with_sensitive_texts(deployed_row())
    monkeypatch.setitem(globals(), "deployed_row", lambda: row)
    for name in ("BACKTEST", "LINE", "TRACED", "ALERT", "HOSTILE"):
        monkeypatch.setitem(globals(), name, with_sensitive_texts(globals()[name]))
    PATHS[path](how)
    printed = "".join("".join(capsys.readouterr()).split())  # a narrow table divides what it shows
    assert printed == "[]" or "400000******0002" in printed
    assert not [secret for secret in (CARD.replace(" ", ""), "me:pass", "0123456789abcdef") if secret in printed]


def with_sensitive_texts(value: Any) -> Any:
    """The value with other texts, also in what it holds."""
    if isinstance(value, dict):
        return {with_sensitive_texts(name): with_sensitive_texts(part) for name, part in value.items()}
    if isinstance(value, list):
        return [with_sensitive_texts(part) for part in value]
    return SENSITIVE if value == HOSTILE else value


def test_a_command_that_has_recorded_it_shows_card_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    for how in OutputFormat:
        output.show([{"key": CARD}], how, card_numbers=True)
        output.show_fields({"key": CARD}, how, card_numbers=True)
        assert capsys.readouterr().out.count(CARD) == 2


@pytest.mark.parametrize("known", [True, False])
def test_an_error_shows_no_card_number(
    known: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise LozengeError(SENSITIVE, hint=SENSITIVE) if known else ValueError(SENSITIVE)

    monkeypatch.setattr(command, "app", fail)
    with pytest.raises(SystemExit):
        command.main()
    printed = capsys.readouterr().err
    assert "4000 00** **** 0002" in printed
    assert CARD not in printed


@pytest.mark.parametrize("known", [True, False])
def test_an_error_lets_no_sequence_through(
    known: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise LozengeError(HOSTILE, hint=HOSTILE) if known else ValueError(HOSTILE)

    monkeypatch.setattr(command, "app", fail)
    with pytest.raises(SystemExit) as ended:
        command.main()
    printed = capsys.readouterr().err
    assert ended.value.code == 1
    assert is_harmless(printed)
    assert printed.startswith("lozenge: ")
    assert "Traceback" not in printed


def test_commands_print_by_the_terminal_alone() -> None:
    """Whatever prints elsewhere would need its own care for what it prints."""
    printing = {"print", "echo", "secho", "write", "writelines", "pprint", "Console"}
    found = []
    for file in FOLDER.rglob("*.py"):
        if file.name == "terminal.py":
            continue
        tree = ast.parse(file.read_text("utf-8"))
        owned = {
            name.asname or name.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            if node.module == "lozenge_deploy.cli.printing.terminal"
            for name in node.names
        }
        for call in (node.func for node in ast.walk(tree) if isinstance(node, ast.Call)):
            name = call.id if isinstance(call, ast.Name) else call.attr if isinstance(call, ast.Attribute) else ""
            if name in printing and name not in owned:
                found.append(f"{file.name}: {ast.unparse(call)}")
    # a table is drawn of cells that are harmless, into no file and by nobody else
    assert sorted(found) == ["output.py: Console", "output.py: _console().print", "output.py: console.print"]


@pytest.mark.parametrize("how", PEOPLE)
def test_a_word_between_colons_is_no_picture(how: OutputFormat, capsys: pytest.CaptureFixture[str]) -> None:
    output.show([{"text": ":warning: [bold]x[/bold]"}], how)
    assert ":warning: [bold]x[/bold]" in capsys.readouterr().out


def test_json_has_no_number_that_json_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    output.show([{"score": float("nan"), "of": [float("inf"), {"x": -float("inf")}], "n": 10**300}], OutputFormat.JSON)
    [row] = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(name))
    assert row == {"score": "nan", "of": ["inf", {"x": "-inf"}], "n": 10**300}


def test_a_table_shows_the_beginning_of_a_long_value_and_wide_and_json_all_of_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [{"value": "x" * 5000}]
    output.show(rows, OutputFormat.TABLE)
    shown = "".join(capsys.readouterr().out.split())
    assert shown.count("x") < MOST_CHARACTERS + 10
    assert "(5000characters;-owideshowsall)" in shown
    output.show(rows, OutputFormat.WIDE)
    assert capsys.readouterr().out.count("x") == 5000
    output.show(rows, OutputFormat.JSON)
    assert json.loads(capsys.readouterr().out) == rows


def test_rows_with_different_fields_are_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    output.show([{"a": 1}, {"b": "two"}], OutputFormat.TABLE)
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [["a", "b"], ["1", "-"], ["-", "two"]]


def test_a_log_line_is_one_line_and_its_stack_is_indented() -> None:
    line = {"time": "t", "level": "error", "event": "a\n2026-03-01 fatal", "exception": "Traceback:\n  x\r\n2026 y"}
    assert logs.text_of(line).split("\n")[1:] == ["    Traceback:", "      x\\r", "    2026 y"]
    assert r"a\n2026-03-01 fatal" in logs.text_of(line)

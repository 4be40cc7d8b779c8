"""How tables look."""

import pytest

from lozenge_deploy.cli.printing.output import OutputFormat, show

ROWS = [
    {"app": "large_amount", "lag": 123456, "reason": "it was unhealthy some time ago"},
    {"app": "b", "lag": 7, "reason": None},
]


@pytest.mark.parametrize(("columns", "lines"), [("80", 3), ("30", 4), ("22", 7)])
def test_a_narrow_terminal_never_cuts_a_number_or_a_name(
    columns: str, lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    show(ROWS, OutputFormat.TABLE)
    output = capsys.readouterr().out
    assert "large_amount" in output
    assert "123456" in output
    assert "…" not in output
    assert len(output.splitlines()) >= lines


@pytest.mark.parametrize("value", ["00ff" * 10_000, "界" * 10_000, "wort " * 10_000], ids=["hex", "wide", "words"])
def test_wide_shows_each_character_of_a_value_of_any_length(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    show([{"offset": 7, "value": value}, {"offset": 8, "value": value}], OutputFormat.WIDE)
    shown = capsys.readouterr().out
    assert shown.count(value[0]) == 2 * value.count(value[0])
    assert "…" not in shown


def test_a_narrow_terminal_never_cuts_wide_characters(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    show([{"key": "k" * 12, "value": "界" * 15}], OutputFormat.TABLE)
    shown = capsys.readouterr().out
    assert (shown.count("界"), "…" in shown) == (15, False), shown

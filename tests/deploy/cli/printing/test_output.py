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

"""What the plugin adds to the report of a detector's test."""

from types import SimpleNamespace
from typing import Any

import pytest

from lozenge.testing import runner
from lozenge.testing.plugin import DeadLettersOfTests
from lozenge.testing.runner import DeadLetterRecord, Run


@pytest.mark.parametrize(("count", "last"), [(0, None), (1, "event e0: my own bug"), (7, "and 2 more")])
def test_a_test_shows_which_of_its_events_became_dead_letters(
    monkeypatch: pytest.MonkeyPatch, count: int, last: str | None
) -> None:
    monkeypatch.setattr(runner, "_listeners", [])
    sections: list[tuple[str, str, str]] = []
    item: Any = SimpleNamespace(add_report_section=lambda *section: sections.append(section))
    plugin: Any = DeadLettersOfTests()
    listener: Any = runner._listeners[0]
    listener(None, Run([], [DeadLetterRecord("of another test", "x")]))
    call = plugin.pytest_runtest_call(item)
    next(call)
    listener(None, Run([], [DeadLetterRecord(f"e{number}", "my own bug") for number in range(count)]))
    with pytest.raises(ValueError, match="not enough values"):
        call.throw(ValueError("not enough values to unpack"))
    assert [(when, title, text.splitlines()[-1]) for when, title, text in sections] == (
        [("call", "dead letters", last)] if last else []
    )

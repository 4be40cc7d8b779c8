"""What a change of a list does is known before it is made, and one that cannot be made is refused as a whole."""

from datetime import UTC, datetime, timedelta

import pytest

from lozenge.errors import UsageError
from lozenge.protocol.list_entries import ListEntry
from lozenge_deploy.operations.lists import changes
from lozenge_deploy.operations.lists.changes import additions, entry_row, removals

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def entries(*values: str, reason: str = "stolen", author: str = "ann", at: datetime = NOW) -> dict[str, ListEntry]:
    return {value: ListEntry(value, reason, author, at) for value in values}


def shown(made: changes.ListChanges) -> list[tuple[str, str]]:
    return [(change.what, change.entry.value) for change in made.made]


def test_an_entry_that_says_the_same_keeps_its_author_and_its_time() -> None:
    later = entries("a", author="bob", at=NOW + timedelta(days=1))
    assert additions("l", entries("a", "b"), later) == changes.ListChanges((), 2)


def test_new_entries_are_added_and_others_changed_while_the_rest_stays() -> None:
    made = additions("l", entries("a", "b"), entries("c", "b", reason="lost"))
    assert shown(made) == [("changed", "b"), ("added", "c")]
    assert made.summary() == "1 added, 1 changed, 0 removed, 1 kept"
    [changed, _] = made.made
    assert changed.before is not None
    assert (changed.before.reason, changed.entry.reason) == ("stolen", "lost")


def test_a_replacement_removes_what_it_lacks() -> None:
    made = additions("l", entries("a", "b", "c"), entries("b", "d"), replace=True)
    assert shown(made) == [("removed", "a"), ("removed", "c"), ("added", "d")]
    assert made.kept == 1


def test_values_are_removed_once_and_every_one_that_is_not_there_is_named() -> None:
    assert shown(removals("l", entries("a", "b"), ["b", "b"])) == [("removed", "b")]
    with pytest.raises(UsageError, match="it does not have 'c', 'd'") as raised:
        removals("l", entries("a"), ["c", "a", "d"])
    assert "nothing was removed" in raised.value.hint


def test_a_list_that_would_be_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MOST_ENTRIES", 2)
    with pytest.raises(UsageError, match="it would have 3 entries, and 2 at most"):
        additions("l", entries("a", "b"), entries("b", "c"))
    assert additions("l", entries("a", "b"), entries("b", "c"), replace=True).kept == 1


def test_a_row_shows_times_with_their_zone() -> None:
    [entry] = entries("a").values()
    assert entry_row(entry) == {
        "value": "a",
        "reason": "stolen",
        "author": "ann",
        "added_at": "2026-03-01T12:00:00+00:00",
        "expires_at": None,
    }

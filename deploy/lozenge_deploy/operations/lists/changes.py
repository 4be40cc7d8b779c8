"""What a change of a reference list does, compared with the entries that it has. Pure."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lozenge.errors import UsageError
from lozenge.protocol.list_entries import ListEntry, quoted

Entries = Mapping[str, ListEntry]
What = Literal["added", "changed", "removed"]
MOST_ENTRIES = 100_000
"""The most that a list may have: a job broadcasts it to each of its tasks."""
_NAMED = 10


@dataclass(frozen=True)
class EntryChange:
    """One entry `before` and `after`; None where there is none."""

    before: ListEntry | None
    after: ListEntry | None

    @property
    def what(self) -> What:
        """What happens to the entry."""
        if self.before is None:
            return "added"
        return "changed" if self.after is not None else "removed"

    @property
    def entry(self) -> ListEntry:
        """The entry that there is after the change, or was before."""
        found = self.after or self.before
        assert found is not None
        return found

    def row(self) -> dict[str, Any]:
        """For people: the change, and the entry."""
        return {"change": self.what, **entry_row(self.entry)}


@dataclass(frozen=True)
class ListChanges:
    """All changes of one command, in the order of the values; `kept` entries stay as they are."""

    made: tuple[EntryChange, ...]
    kept: int

    def count(self, what: What) -> int:
        """How many entries are added, changed or removed."""
        return sum(change.what == what for change in self.made)

    def summary(self) -> str:
        """ "2 added, 1 changed, 0 removed, 7 kept"."""
        counts = [f"{self.count(what)} {what}" for what in ("added", "changed", "removed")]
        return ", ".join([*counts, f"{self.kept} kept"])


def entry_row(entry: ListEntry) -> dict[str, Any]:
    """An entry for people; times as ISO 8601."""
    return {
        "value": entry.value,
        "reason": entry.reason,
        "author": entry.author,
        "added_at": entry.added_at.isoformat(timespec="seconds"),
        "expires_at": entry.expires_at.isoformat(timespec="seconds") if entry.expires_at else None,
    }


def additions(name: str, present: Entries, wanted: Entries, *, replace: bool = False) -> ListChanges:
    """Adds the entries `wanted`, or changes those that say something else; with `replace`, removes all others.

    An entry that says the same keeps its author and its time. Raises UsageError if the list would be too long.
    """
    made = [EntryChange(present.get(value), entry) for value, entry in wanted.items() if _differs(present, entry)]
    if replace:
        made += [EntryChange(entry, None) for value, entry in present.items() if value not in wanted]
    left = present.keys() | wanted.keys() if not replace else wanted.keys()
    if len(left) > MOST_ENTRIES:
        raise UsageError(
            f"changing list {name}: it would have {len(left)} entries, and {MOST_ENTRIES} at most are taken",
            hint="nothing was changed; a table of more rows is a file (path = ...)",
        )
    return _changes(present, made)


def removals(name: str, present: Entries, values: Collection[str]) -> ListChanges:
    """Removes the entries of `values`; raises UsageError that names all values which are not in the list."""
    if missing := [value for value in dict.fromkeys(values) if value not in present]:
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        named = ", ".join(map(quoted, missing[:_NAMED])) + more
        raise UsageError(
            f"removing from list {name}: it does not have {named}",
            hint=f"nothing was removed; `lozenge list ls {name}` shows its entries",
        )
    return _changes(present, [EntryChange(present[value], None) for value in dict.fromkeys(values)])


def _differs(present: Entries, entry: ListEntry) -> bool:
    known = present.get(entry.value)
    return known is None or not known.equals_but_for_author(entry)


def _changes(present: Entries, made: list[EntryChange]) -> ListChanges:
    touched = {change.entry.value for change in made}
    return ListChanges(tuple(sorted(made, key=lambda change: change.entry.value)), len(present.keys() - touched))


def rows(changes: ListChanges) -> Iterator[dict[str, Any]]:
    """A row for each change."""
    return (change.row() for change in changes.made)

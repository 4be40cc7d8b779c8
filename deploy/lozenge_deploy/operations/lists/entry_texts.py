"""The entries that a command or a CSV file spells; all that is wrong with them is reported at once."""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

from lozenge.durations import duration
from lozenge.errors import ConfigError, UsageError
from lozenge.process.text_files import bad_byte, text_in
from lozenge.protocol.list_entries import ListEntry, problems, quoted

VALUE, REASON, EXPIRY = COLUMNS = ("value", "reason", "expires_at")
"""The columns of a file, of which only the first is required."""
MOST_PROBLEMS = 100
"""How many problems are named; the others are counted."""


@dataclass(frozen=True)
class Given:
    """What the entries of one command have in common: their author, when that is, and what a file need not say."""

    author: str
    at: datetime
    reason: str = ""
    expires_at: datetime | None = None


def expiry_of(text: str, at: datetime) -> datetime:
    """The moment that `text` names: a time with a zone, a day (its beginning in UTC), or a time from `at` on, "30d".

    Raises ValueError for any other text, and for a moment that is not after `at`.
    """
    try:
        moment = datetime.fromisoformat(text)
        if len(text) <= len("2026-12-31"):
            moment = moment.replace(tzinfo=UTC)
    except ValueError:
        try:
            moment = at + duration(text)
        except (ValueError, OverflowError):
            raise ValueError(
                f'{quoted(text)} is no expiry: write "30d", "2026-12-31" or "2026-12-31T18:00:00Z"'
            ) from None
    if moment.tzinfo is None:
        raise ValueError(f"{quoted(text)} has no time zone: write {text}Z for UTC")
    if moment <= at:
        raise ValueError(f"{quoted(text)} is over already: the entry would never count")
    return moment.astimezone(UTC)


def from_values(values: Sequence[str], given: Given) -> dict[str, ListEntry]:
    """An entry for each of `values`; raises ConfigError with every problem."""
    entries = {value: ListEntry(value, given.reason, given.author, given.at, given.expires_at) for value in values}
    found = [problem for entry in entries.values() for problem in problems(entry)]
    counts = Counter(values)
    found += [f"value {quoted(value)} is given {count} times" for value, count in counts.items() if count > 1]
    _require_none("reading the entries", [*dict.fromkeys(found)])
    return entries


def from_file(file: Path, given: Given) -> dict[str, ListEntry]:
    """The entries of a CSV file, by value.

    Raises ConfigError with every problem of the file, UsageError if it cannot be read.
    """
    try:
        text = text_in(file.read_bytes())
    except UnicodeDecodeError as error:
        raise ConfigError(f"importing {file}: it is not UTF-8: {bad_byte(error)}", hint="save it as UTF-8") from error
    except OSError as error:
        raise UsageError(f"importing {file}: {error.strerror}", hint="name a CSV file that can be read") from error
    reading = _Reading(given)
    entries = reading.entries(text)
    _require_none(f"importing {file}", reading.problems)
    return entries


class _Reading:
    """Reads the text of one file; `problems` name its lines."""

    def __init__(self, given: Given) -> None:
        self._given = given
        self.problems: list[str] = []

    def entries(self, text: str) -> dict[str, ListEntry]:
        """The entries by value; of no use if there are problems."""
        reader = csv.reader(StringIO(text, newline=""), strict=True)
        lines: dict[str, int] = {}
        entries: dict[str, ListEntry] = {}
        try:
            header = next(reader, [])
            if wrong := [*_header_problems(header)]:
                self.problems += wrong
                header = self._meant(header)
                if VALUE not in header:
                    return {}
            for row in (each for each in reader if each):
                if len(row) != len(header):
                    self._add(reader.line_num, f"it has {len(row)} fields, and the header has {len(header)}")
                    continue
                entry = self._entry(dict(zip(header, row, strict=True)), reader.line_num)
                if entry.value in lines:
                    self._add(reader.line_num, f"value {quoted(entry.value)} is in line {lines[entry.value]} already")
                else:
                    lines[entry.value], entries[entry.value] = reader.line_num, entry
        except csv.Error as error:
            self._add(reader.line_num, str(error))
        if not entries and not self.problems:
            self.problems.append("it has no entry; `lozenge list remove` removes entries")
        return entries

    def _meant(self, header: Sequence[str]) -> list[str]:
        """What a wrong header can only mean, so that the problems of the rows are named too; else nothing.

        Rows that lack a reason are no problem then: its column may be the one with another name.
        """
        if REASON not in header and not self._given.reason:
            self._given = replace(self._given, reason="unknown")
        others = [name for name in header if name not in COLUMNS]
        if VALUE not in header and len(others) == 1:
            return [VALUE if name == others[0] else name for name in header]
        return [*header] if all(header.count(name) == 1 for name in COLUMNS if name in header) else []

    def _entry(self, fields: Mapping[str, str], line: int) -> ListEntry:
        expires_at, given = self._given.expires_at, self._given
        if text := fields.get(EXPIRY):
            try:
                expires_at = expiry_of(text, given.at)
            except ValueError as error:
                self._add(line, f"{EXPIRY}: {error}")
        reason = fields.get(REASON) or given.reason
        entry = ListEntry(fields[VALUE], reason, given.author, given.at, expires_at)
        for problem in problems(entry):
            if reason or not problem.startswith(REASON):
                self._add(line, problem)
            else:
                self._add(line, "it has no reason: fill the column, or give one for all by --reason")
        return entry

    def _add(self, line: int, problem: str) -> None:
        self.problems.append(f"line {line}: {problem}")


def _header_problems(header: Sequence[str]) -> Iterator[str]:
    named = ", ".join(map(quoted, header)) or "nothing"
    if VALUE not in header:
        yield f"its first line must name the columns {', '.join(COLUMNS)}, of which {VALUE} is required; it has {named}"
    if VALUE in header and (other := [name for name in header if name not in COLUMNS]):
        yield f"a list has no column {', '.join(map(quoted, other))}; it has {', '.join(COLUMNS)}"
    if twice := [name for name in COLUMNS if header.count(name) > 1]:
        yield f"it has the column {', '.join(twice)} more than once"


def _require_none(doing: str, found: Sequence[str]) -> None:
    if found:
        shown = [*found[:MOST_PROBLEMS]]
        if len(found) > MOST_PROBLEMS:
            shown.append(f"and {len(found) - MOST_PROBLEMS} more")
        raise ConfigError(
            f"{doing}: {len(found)} problem(s)",
            problems=shown,
            hint="nothing was changed; correct them, then try again",
        )

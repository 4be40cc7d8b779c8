"""A version of a table as it is read: validated row by row, and compared with the rows that the topic has. Pure.

Of rows that stay only digests are held.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from lozenge.contracts.card_numbers import masked
from lozenge.contracts.display_text import shortened
from lozenge.platform_tables.column_types import column_types, sql_name
from lozenge.platform_tables.definition import PlatformTable
from lozenge.process.last_good import Contents
from lozenge.protocol.table_records import LONGEST_ROW, encoded_row, row_key
from lozenge_upstream.tables.row_texts import texts_of
from lozenge_upstream.tables.source_rows import Part

MOST_PROBLEMS = 10
"""How many problems of a version are named; the others are counted."""
_DIGEST_BYTES, _QUOTED = 16, 60


def digest(row: bytes) -> bytes:
    """What is held of a row that stays."""
    return blake2b(row, digest_size=_DIGEST_BYTES).digest()


@dataclass(frozen=True)
class TableChange:
    """What a version adds to the rows of the topic, changes in them, and removes."""

    added: Mapping[str, bytes]
    changed: Mapping[str, bytes]
    removed: Collection[str]

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)

    def __str__(self) -> str:
        return f"{len(self.added)} added, {len(self.changed)} changed, {len(self.removed)} removed"


@dataclass
class NewVersion:
    """The version of `table` that is being read, in comparison with the digests of the rows by key that there are."""

    table: PlatformTable
    known: Mapping[str, bytes]
    seen: dict[str, bytes] = field(default_factory=dict)
    """The digest of each row, by key."""
    _added: dict[str, bytes] = field(default_factory=dict)
    _changed: dict[str, bytes] = field(default_factory=dict)
    _values: Counter[str] = field(default_factory=Counter)
    _problems: list[str] = field(default_factory=list)
    _number: int = 0
    _count: int = 0

    def __post_init__(self) -> None:
        self._types = column_types(self.table.columns)

    @property
    def columns(self) -> list[str]:
        """The names of the declared columns."""
        return [*self._types]

    @property
    def is_too_long(self) -> bool:
        """Whether it has more rows than are declared; the rest need not be read."""
        return self._number > self.table.rows

    def add(self, part: Part) -> None:
        """Takes some rows, as the values of each declared column."""
        columns = dict[str, Sequence[str | None]]()
        wrong = list[tuple[int, str]]()
        for values, (name, kind) in zip(part, self._types.items(), strict=True):
            columns[name], misfits = texts_of(values, kind)
            wrong += [(place, f"{name} is {misfit}") for place, misfit in misfits.items()]
            if name in self.table.required:
                absent = (place for place, value in enumerate(values) if value is None)
                wrong += [(place, f"{name} is null, and every row has one") for place in absent]
            self._values[name] += sum(text is not None for text in columns[name])
        for place, problem in sorted(wrong):
            self._problem(f"row {self._number + place + 1}{self._named(columns, place)}: {problem}")
        if not self._problems:
            self._take(columns)
        self._number += len(part[0])

    def contents(self) -> Contents:
        """What was found in it, after all of it was read, without a digest."""
        problems = [*self._problems]
        if self._count > MOST_PROBLEMS:
            problems.append(f"and {self._count - MOST_PROBLEMS} more")
        if self.is_too_long:
            problems.append(
                f"it has more than {self.table.rows:,} rows, which `rows` declares; select fewer, or raise it"
            )
        shape = {name: sql_name(kind) for name, kind in self._types.items()}
        return Contents("", self._number, shape, problems=tuple(problems), values=dict(self._values))

    def change(self) -> TableChange:
        """What it changes, if it has no problems."""
        removed = [key for key in self.known if key not in self.seen]
        return TableChange(self._added, self._changed, removed)

    def _take(self, columns: Mapping[str, Sequence[str | None]]) -> None:
        for place, row in enumerate(_rows(columns)):
            key, value = row_key([row[name] or "" for name in self.table.key]), encoded_row(row)
            now, before = digest(value), self.known.get(key)
            if len(value) > LONGEST_ROW:
                self._problem(
                    f"row {self._number + place + 1}: it has {len(value):,} bytes, and {LONGEST_ROW:,} are taken"
                )
            elif key in self.seen:
                named = self._named(columns, place)
                self._problem(f"row {self._number + place + 1}{named}: an earlier row has the same key")
            elif before is None:
                self._added[key] = value
            elif before != now:
                self._changed[key] = value
            self.seen[key] = now

    def _problem(self, sentence: str) -> None:
        self._count += 1
        if self._count <= MOST_PROBLEMS:
            self._problems.append(sentence)
            self._added.clear()
            self._changed.clear()

    def _named(self, columns: Mapping[str, Sequence[str | None]], place: int) -> str:
        """The key of a row as far as it is known, for people."""
        found = ", ".join(f"{name} {columns[name][place]}" for name in self.table.key)
        return f" ({shortened(masked(found), _QUOTED)})"


def _rows(columns: Mapping[str, Sequence[str | None]]) -> Iterator[dict[str, str | None]]:
    names = [*columns]
    return (dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True))


def known_of(rows: Mapping[str, bytes]) -> dict[str, bytes]:
    """The digests of rows by key."""
    return {key: digest(row) for key, row in rows.items()}

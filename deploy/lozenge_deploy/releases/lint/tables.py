"""Reference tables as a job reads them, and what in them no event matches."""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from lozenge import ddl
from lozenge.detector.manifest import Manifest
from lozenge.detector.tables import reference_tables
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.fields import TEXT
from lozenge_deploy.releases.source_files import source_files

ROWS = 200_000
"""So many rows of a table are looked at for values that no event has."""


def table_problems(folder: Path, declaration: Manifest) -> Iterator[str]:
    """What a job would refuse to begin with."""
    for table in (each for each in declaration.tables.values() if each.path):
        file = folder / table.path
        if file.exists():
            for problem in reference_tables.problems(table, folder):
                yield f"{table.path}: {problem.removeprefix(f'{file.name} ')}"
        else:
            yield f"{table.path}: missing; [tool.lozenge.tables] names it"


def table_warnings(folder: Path, declaration: Manifest, stream: StreamDefinition) -> Iterator[str]:
    """Values on which a join with events never matches, such as a code that lost its leading zero.

    And lists whose expired entries the code does not seem to skip.
    """
    yield from _expired_entries(folder, declaration)
    forms, events = _forms(stream), {field.name for field in stream.fields} | {"event_id", "event_time"}
    for table in (each for each in declaration.tables.values() if each.path):
        try:
            declared = ddl.columns(table.columns) if table.columns else {}
            rows = list(islice(_rows(folder / table.path), ROWS)) if declared else []
        except (OSError, ValueError, csv.Error):
            continue  # a problem of its own
        header = [name.strip().lower() for name in rows[0][1]] if rows else []
        texts = {name.lower() for name, kind in declared.items() if kind == "string"}
        for column in sorted(forms.keys() & texts & set(header)):
            pattern, words = forms[column]
            at = header.index(column)
            odd = [(line, row[at]) for line, row in rows[1:] if len(row) > at and not re.fullmatch(pattern, row[at])]
            if odd:
                line, value = odd[0]
                yield (
                    f"{table.path}: {len(odd)} value(s) of {column} are not {words}, as an event's {column} is, so "
                    f"no event matches: the first is {value!r} in line {line}"
                )
        keys = [name for name in header if name in events & {name.lower() for name in declared}]
        yield from (f"{table.path}: {repeat}" for repeat in _repeats(header, keys, rows[1:]))


def _expired_entries(folder: Path, declaration: Manifest) -> Iterator[str]:
    lists = [f"{name} (list {table.list})" for name, table in declaration.tables.items() if table.list]
    if lists and not any(
        re.search(r"\blisted\(|\bexpires_at\b", source.read_text("utf-8", errors="replace"))
        for source in source_files(folder)
        if source.suffix == ".py" and not source.name.startswith("test_")
    ):
        yield (
            f"{folder.name}.py: the table {', '.join(lists)} keeps entries after their expiry, and no code looks at "
            "expires_at: look values up by lozenge.listed(...), which does"
        )


def _repeats(header: list[str], keys: list[str], rows: list[tuple[int, list[str]]]) -> Iterator[str]:
    """Rows that have the same values as another one in the columns `keys`, on which events are joined."""
    places = [header.index(key) for key in keys]
    found = Counter[tuple[str, ...]]()
    repeats = []
    for line, row in rows:
        values = tuple(row[place] for place in places) if len(row) == len(header) else ()
        if values and all(values):  # an empty field is null, and joins nothing
            found[values] += 1
            repeats += [(line, ", ".join(values))] * (found[values] > 1)
    if repeats:
        line, value = repeats[0]
        yield (
            f"{len(repeats)} row(s) repeat the {', '.join(keys)} of another, so an event that joins them raises an "
            f"alert for each: the first is {value!r} in line {line}"
        )


def _rows(file: Path) -> Iterator[tuple[int, list[str]]]:
    """Line and values of each row, the header first; raises ValueError for a file that is not UTF-8, OSError."""
    with file.open(newline="", encoding="utf-8-sig") as lines:
        reader = csv.reader(lines)
        yield from ((reader.line_num, row) for row in reader if row)


def _forms(stream: StreamDefinition) -> dict[str, tuple[str, str]]:
    """How events write what tables are joined on: by column a regular expression, and that in words."""
    forms = dict.fromkeys(stream.keys.values(), (r"\S(.*\S)?", "texts without blanks around them"))
    for field in stream.fields:
        if field.pattern is not None:
            forms[field.name] = field.pattern, f"of the form {field.pattern}"
        elif field.kind == TEXT and field.values is not None:
            forms[field.name] = "|".join(map(re.escape, sorted(field.values))), f"of {', '.join(sorted(field.values))}"
    return forms

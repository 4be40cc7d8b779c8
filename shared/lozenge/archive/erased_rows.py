"""Which rows of a table name a subject, and what is left of them.

Of a row that is the subject's, its coordinates and times stay, and every other column is null: so tables keep their
counts, their offsets and their statistics. A row of another entity that names the subject keeps all but that word.
Every other row stays as it is, bit by bit.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lozenge.archive.columns import PLATFORM, RAW
from lozenge.protocol.data_subject import DataSubject

ENTITY = "entity"
"""The column of alerts, and of feedback, that says whom a record is about."""
ALERT_ID, ALERT_IDS = "alert_id", "alert_ids"
"""The column with the id of an alert, and that of notifications with the alerts of their case."""


class ErasureTarget(NamedTuple):
    """Whose rows are erased: those of `subject`, which those of a table of events have in `column`.

    A notification names nobody but its alerts: it is the subject's if any of `alerts`, the ids of the subject's, is
    among them.
    """

    subject: DataSubject
    column: str = ""
    alerts: frozenset[str] = frozenset()

    def has(self, row: dict[str, Any]) -> bool:
        """Whether a row of `text_columns` is the subject's."""
        if self.column and row.get(self.column) == self.subject.value:
            return True
        if not self.alerts.isdisjoint(row.get(ALERT_IDS) or ()):
            return True
        about = row.get(ENTITY)
        if isinstance(about, dict):
            return (about.get("type"), about.get("id")) == (self.subject.key, self.subject.value)
        return bool(about == self.subject.name)

    def is_named_in(self, row: dict[str, Any]) -> bool:
        """Whether a row is the subject's, or names it."""
        return self.has(row) or self.subject.is_in_data(row)


class ErasedRows(NamedTuple):
    """The rows afterwards: how many were `removed` but for their coordinates, and in how many a word was `masked`."""

    rows: pa.Table
    removed: int
    masked: int


def text_columns(columns: pa.Schema) -> list[str]:
    """The columns that may name anybody: those with texts or bytes, at any depth."""
    return [field.name for field in columns if field.name not in PLATFORM.names and _has_text(field.type)]


def naming(rows: pa.Table, target: ErasureTarget) -> list[int]:
    """The numbers of the rows in which any of `text_columns` names the subject, in rising order."""
    texts = text_columns(rows.schema)
    likely = sorted(
        {number for name in texts for number in _likely(rows[name], target.subject)}
        | {*_of_alerts(rows, target.alerts)}
    )
    found = rows.select(texts).take(pa.array(likely, pa.int64())).to_pylist()
    return [number for number, row in zip(likely, found, strict=True) if target.is_named_in(row)]


def alerts_of(rows: pa.Table, subject: DataSubject) -> set[str]:
    """The ids of the subject's alerts among rows of alerts."""
    target = ErasureTarget(subject)
    found = rows.select([ENTITY, ALERT_ID]).take(pa.array(naming(rows.select([ENTITY]), target), pa.int64()))
    return {row[ALERT_ID] for row in found.to_pylist() if target.has(row) and row[ALERT_ID]}


def erased(rows: pa.Table, target: ErasureTarget) -> ErasedRows:
    """The rows without the subject. Dead letters, which are kept as bytes, are the subject's if they name it."""
    subject = target.subject
    named = naming(rows, target)
    if not named:
        return ErasedRows(rows, 0, 0)
    texts = text_columns(rows.schema)
    whole = rows.select(texts).take(pa.array(named, pa.int64())).to_pylist()
    kept_as_bytes = all(field in rows.schema for field in RAW)
    removed = {number for number, row in zip(named, whole, strict=True) if kept_as_bytes or target.has(row)}
    masked = [number for number in named if number not in removed]
    as_is = [None if number in removed else number for number in range(len(rows))]
    changed = list(as_is)
    for place, number in enumerate(masked):
        changed[number] = len(rows) + place
    found = rows
    for number, field in enumerate(rows.schema):
        if field.name in PLATFORM.names:
            continue
        values = rows[field.name]
        order = as_is
        if masked and field.name in texts:
            others = values.take(pa.array(masked, pa.int64())).to_pylist()
            replaced = pa.array([subject.erased_from_data(each) for each in others], field.type)
            values = pa.chunked_array([*values.chunks, replaced], field.type)
            order = changed
        found = found.set_column(number, field, values.take(pa.array(order, pa.int64())))
    return ErasedRows(found, len(removed), len(masked))


def _of_alerts(rows: pa.Table, alerts: frozenset[str]) -> Iterator[int]:
    """The rows of notifications about any of these alerts."""
    if alerts and ALERT_IDS in rows.schema.names:
        for number, named in enumerate(rows[ALERT_IDS].to_pylist()):
            if not alerts.isdisjoint(named or ()):
                yield number


def _likely(values: Any, subject: DataSubject) -> Iterator[int]:
    """Rows that may name the subject: of a nested column all, if any of its texts has the value."""
    begin = 0
    for chunk in values.chunks:
        if _is_text(chunk.type):
            hits: Any = pc.match_substring(chunk, subject.value)
            yield from (begin + number for number in pc.indices_nonzero(hits.fill_null(False)).to_pylist())
        elif any(_has(leaf, subject) for leaf in _leaves(chunk)):
            yield from (begin + n for n, part in enumerate(chunk.to_pylist()) if subject.is_in_data(part))
        begin += len(chunk)


def _has(leaf: Any, subject: DataSubject) -> bool:
    return bool(pc.any(pc.match_substring(leaf, subject.value)).as_py())


def _leaves(values: Any) -> Iterator[Any]:
    """The texts and bytes within an array, at any depth."""
    kind = values.type
    if _is_text(kind):
        yield values
    elif pa.types.is_map(kind):
        yield from _within((values.keys, values.items))
    elif pa.types.is_list(kind):
        yield from _leaves(values.values)
    elif pa.types.is_struct(kind):
        yield from _within(values.field(number) for number in range(kind.num_fields))


def _within(parts: Iterable[Any]) -> Iterator[Any]:
    for part in parts:
        yield from _leaves(part)


def _has_text(kind: Any) -> bool:
    if pa.types.is_map(kind):
        return _has_text(kind.key_type) or _has_text(kind.item_type)
    if pa.types.is_list(kind):
        return _has_text(kind.value_type)
    if pa.types.is_struct(kind):
        return any(_has_text(field.type) for field in _fields(kind))
    return _is_text(kind)


def _fields(kind: Any) -> Sequence[Any]:
    return [kind.field(number) for number in range(kind.num_fields)]


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))

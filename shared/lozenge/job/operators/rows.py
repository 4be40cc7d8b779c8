"""Arrow columns as Python objects; times and decimals, which are slow to make one by one, the quick way."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of `table` by name of column."""
    names = table.column_names
    for batch in table.to_batches():
        columns = map(values, batch.columns)
        yield from (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def values(column: "pa.Array[Any]") -> Sequence[Any]:
    """What stands in `column`; times are aware UTC."""
    if pa.types.is_timestamp(column.type) and column.null_count == 0:
        micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_numpy()
        return [_EPOCH + elapsed for elapsed in micros.view("timedelta64[us]").tolist()]
    if pa.types.is_decimal(column.type):
        coded = column.dictionary_encode()
        amounts = [*coded.dictionary.to_pylist(), None]  # a null has no index, and takes the last
        return [amounts[-1 if index is None else index] for index in coded.indices.to_pylist()]
    found: Sequence[Any] = column.to_pylist()
    return found

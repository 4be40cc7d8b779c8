"""The files of a campaign, as pyarrow writes and reads them; nothing of Lozenge is imported."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

GROUP_ROWS = 150
"""No multiple of a transaction's rows: some of these end within a row group."""


def write(folder: Path, name: str, rows: Sequence[dict[str, str]]) -> None:
    """Writes a file, which has its name once it is complete."""
    part = folder / f".{name}"
    pq.write_table(pa.Table.from_pylist([*rows]), part, row_group_size=GROUP_ROWS)
    part.rename(folder / name)


def written_in(folder: Path) -> dict[str, str]:
    """The transaction of each row of each file, by its place, such as `a.parquet:17`."""
    return {
        f"{file.name}:{number}": str(txn_id)
        for file in folder.glob("[!.]*.parquet")
        for number, txn_id in enumerate(pq.read_table(file, columns=["txn_id"])["txn_id"].to_pylist())
    }

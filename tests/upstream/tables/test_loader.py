"""A look without a broker: what is good, and what is wrong with the source as a whole."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lozenge.platform_tables.state import TableState
from lozenge.process.last_good import Contents
from lozenge_upstream.tables.lake import ParquetRows
from lozenge_upstream.tables.loader import LoadedRows, looked
from tests.tables import limits


def rows(countries: Any) -> pa.Table:
    return pa.table(
        {"country": countries, "most": [1] * len(countries), "since": pa.nulls(len(countries), pa.string())}
    )


def test_what_is_loaded_changes_with_a_good_version_alone(tmp_path: Path) -> None:
    table, source = limits(path=str(tmp_path)), ParquetRows(str(tmp_path))
    pq.write_table(rows(pa.array([f"C{n}" for n in range(30)])), tmp_path / "a.parquet")
    found, loaded = looked(table, source, LoadedRows())
    assert (found.state, len(found.change.added), len(loaded.digests)) == (TableState.GOOD, 30, 30)
    assert loaded.last == Contents("", 30, {}, values={"country": 30, "most": 30, "since": 0})
    for bad, why in (
        (rows(pa.array(["C1"])), "it has 1 rows, and the version before has 30"),
        (rows(pa.array([b"\xff"]).view(pa.string())), "it has a text that is not UTF-8"),
        (pa.table({"country": ["C1"]}), "it has no column most, since"),
    ):
        pq.write_table(bad, tmp_path / "a.parquet")
        found, after = looked(table, source, loaded)
        assert (found.state, after) == (TableState.REFUSED, loaded)
        assert found.problems[0].startswith(why)
    (tmp_path / "a.parquet").unlink()
    tmp_path.rmdir()
    assert looked(table, source, loaded)[0].state is TableState.UNREACHABLE

"""Tables are compared with their topics; the rows of a real Delta table are counted."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lozenge.sink_declarations.archive_sink import ArchiveSink
from lozenge_deploy.demo.sinks.archive_check import TableCount, archive_comparisons, rows_of

SINK = ArchiveSink(name="archive", kind="archive", title="All", owner="tests")
SOUND = TableCount("events", rows=9, places=9, dead_letters=1, records=10)


def wrong(*counts: TableCount) -> list[str]:
    return [each.name for each in archive_comparisons(SINK, counts) if not each.ok]


def test_rows_and_dead_letters_are_the_records_of_the_topic() -> None:
    assert wrong(SOUND, TableCount("alerts", 0, 0, 0, 0)) == []
    assert len(archive_comparisons(SINK, [SOUND, TableCount("alerts", 0, 0, 0, 0)])) == 2


@pytest.mark.parametrize(
    ("count", "what"),
    [
        (SOUND._replace(rows=8, places=8), "sink-archive: rows + dead letters of events"),
        (SOUND._replace(dead_letters=0), "sink-archive: rows + dead letters of events"),
        (SOUND._replace(rows=0, places=0, dead_letters=0), "sink-archive: rows + dead letters of events"),
        (SOUND._replace(places=8), "sink-archive: rows that are there twice"),
    ],
)
def test_a_row_that_is_lost_or_there_twice_is_wrong(count: TableCount, what: str) -> None:
    assert wrong(count) == [what]


def test_the_rows_of_a_table_are_those_of_its_newest_version(tmp_path: Path) -> None:
    assert rows_of(tmp_path / "table") == (0, 0)
    rows = pa.table({"partition": [0, 0, 1], "offset": [5, 6, 5], "day": ["a", "a", "b"]})
    write_deltalake(tmp_path / "table", rows, partition_by=["day"])
    assert rows_of(tmp_path / "table") == (3, 3)
    write_deltalake(tmp_path / "table", rows.slice(0, 2), mode="append")
    assert rows_of(tmp_path / "table") == (5, 3)
    write_deltalake(tmp_path / "table", rows.slice(0, 1), mode="overwrite")
    assert rows_of(tmp_path / "table") == (1, 1)

"""A detector's tables change only from one good version to another, and a query reads exactly what was validated."""

import gc
import os
import re
from datetime import UTC, datetime, time
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lozenge.detector.tables import reference_tables
from lozenge.detector.tables.declared_table import Table
from lozenge.detector.tables.reference_tables import ReferenceTables, problems
from lozenge.errors import DetectorError
from lozenge.process.file_versions import FileVersions

LIMITS = Table(path="limits.csv", columns="mcc string NOT NULL, mcc_limit int")
CARDS = Table(path="cards.parquet")


@pytest.fixture(autouse=True)
def _settled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_tables, "FileVersions", partial(FileVersions, settled_seconds=0.0))


def rows(count: int = 20) -> str:
    return "mcc,mcc_limit\n" + "".join(f"{1000 + n},{n}\n" for n in range(count))


def cards(*names: str, column: str = "card_id") -> pa.Table:
    return pa.table({column: [*names] * 10})


def read(tables: ReferenceTables) -> dict[str, pa.Table]:
    """What a query reads."""
    spark: Any = SimpleNamespace(read=SimpleNamespace(parquet=pq.read_table))
    return tables.load(spark)  # type: ignore[return-value]


def begun(folder: Path, **declared: Table) -> ReferenceTables:
    tables = ReferenceTables(declared, folder, folder / "copies")
    tables.take()
    return tables


def test_a_query_reads_the_versions_that_were_taken_until_it_takes_others(tmp_path: Path) -> None:
    file = tmp_path / "limits.csv"
    file.write_text("mcc,mcc_limit\n5411,10\n")
    tables = begun(tmp_path, limits=LIMITS)
    first = dict(tables.taken)
    file.write_text("mcc_limit,mcc\n20,5411\n")
    assert tables.poll(), "there is a new one"
    assert tables.taken == first
    assert read(tables)["limits"].to_pylist() == [{"mcc": "5411", "mcc_limit": 10}]
    assert tables.take() != first
    assert read(tables)["limits"].to_pylist() == [{"mcc": "5411", "mcc_limit": 20}]
    assert not tables.poll()
    assert all(len(version) == 12 for version in tables.taken.values())


def test_a_version_is_the_same_wherever_the_file_is(tmp_path: Path) -> None:
    versions = []
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "limits.csv").write_text(rows())
        versions.append(begun(tmp_path / place, limits=LIMITS).taken)
    assert versions[0] == versions[1]


def test_a_table_without_a_good_version_is_named_with_path_and_cause(tmp_path: Path) -> None:
    (tmp_path / "limits.csv").write_text("mcc,mcc_limit\n5411,many\n")
    with pytest.raises(DetectorError) as raised:
        begun(tmp_path, limits=LIMITS, cards=CARDS)
    assert f"reading table limits: {tmp_path}/limits.csv is refused: limits.csv line 2: mcc_limit is 'many'" in str(
        raised.value
    )
    assert f"reading table cards: {tmp_path}/cards.parquet is refused: it cannot be read: No such file" in str(
        raised.value
    )
    assert "[tool.lozenge.tables]" in raised.value.hint


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (rows()[:60], "line 8 has 1 fields, the header 2"),
        (rows().rstrip("\n"), "may be cut off"),
        (rows(2), "it has 2 rows, and the version before has 20 (shrinks_to = 0.5)"),
        ("mcc,mcc_limit\n", "it has no rows"),
        ("", "has no column mcc, mcc_limit"),
        (rows().replace("mcc_limit", "limit"), "has no column mcc_limit"),
        (rows().replace(",7\n", ",seven\n"), "line 9: mcc_limit is 'seven', which is no int"),
        (rows().replace("1007,", ","), "line 9: mcc is empty, and it is NOT NULL"),
        (re.sub(r"(?m),[0-9]+$", ",", rows()), "its column mcc_limit has 0 values, and 20 in the version before"),
    ],
)
def test_a_bad_csv_file_changes_nothing_and_the_alarm_names_table_file_and_cause(
    content: str, cause: str, tmp_path: Path
) -> None:
    file = tmp_path / "limits.csv"
    file.write_text(rows())
    tables = begun(tmp_path, limits=LIMITS)
    before = read(tables)["limits"]
    file.write_text(content)
    assert not tables.poll()
    [alarm] = tables.alarms()
    assert alarm.startswith(f"table limits: {file} is refused: ")
    assert cause in alarm
    assert alarm.endswith(f"; version {tables.taken['limits']} with 20 rows stays in force")
    tables.take()
    assert read(tables)["limits"].equals(before)
    file.write_text(rows(21))
    assert tables.poll()
    assert tables.alarms() == []


def test_a_bad_parquet_file_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "cards.parquet"
    pq.write_table(cards("a", "b"), file)
    tables = begun(tmp_path, cards=CARDS)
    before, good = read(tables)["cards"], file.read_bytes()
    bad: dict[str, list[Any]] = {
        "no readable Parquet file": [b"", good[: len(good) // 2], b"PAR1" + b"\x00" * 99 + b"PAR1"],
        "it has no column card_id": [(cards("a", "b", column="card"))],
        "its column card_id is bigint, and was string": [pa.table({"card_id": [1] * 20})],
        "it has no rows": [cards()],
        "shrinks_to": [pa.table({"card_id": ["a"]})],
        "its column card_id has 9 values, and 20 in": [pa.table({"card_id": ["a"] * 9 + [None] * 11})],
    }
    for cause, contents in bad.items():
        for content in contents:
            if isinstance(content, bytes):
                file.write_bytes(content)
            else:
                pq.write_table(content, file)
            assert not tables.poll()
            assert cause in tables.alarms()[0]
            assert read(tables)["cards"].equals(before)


def test_a_parquet_file_with_broken_pages_is_found_by_reading_it_whole(tmp_path: Path) -> None:
    file = tmp_path / "cards.parquet"
    pq.write_table(pa.table({"card_id": [f"card-{n}" for n in range(5_000)]}), file, compression="zstd")
    tables = begun(tmp_path, cards=CARDS)
    content = bytearray(file.read_bytes())
    content[200:1_000] = bytes(800)
    file.write_bytes(content)
    assert not tables.poll()
    assert "cards.parquet is no readable Parquet file" in tables.alarms()[0]


def test_a_folder_that_is_replaced_file_by_file_counts_as_a_whole(tmp_path: Path) -> None:
    folder = tmp_path / "cards"
    folder.mkdir()
    for part in ("part-0.parquet", "part-1.parquet"):
        pq.write_table(cards("a"), folder / part)
    tables = begun(tmp_path, cards=Table(path="cards"))
    pq.write_table(pa.table({"card_id": ["b"] * 10, "risk": [1] * 10}), folder / "part-0.parquet")
    assert not tables.poll()
    assert "cards/part-1.parquet has other columns than cards/part-0.parquet" in tables.alarms()[0]
    (folder / "part-1.parquet").write_bytes(b"PAR1")
    assert not tables.poll()
    assert "cards/part-1.parquet is no readable Parquet file" in tables.alarms()[0]
    (folder / "part-1.parquet").unlink()
    (folder / "_SUCCESS").touch()
    assert tables.poll()
    tables.take()
    assert read(tables)["cards"].column_names == ["card_id", "risk"]


def test_a_csv_folder_is_one_table(tmp_path: Path) -> None:
    folder = tmp_path / "limits.csv"
    folder.mkdir()
    for number in (1, 2):
        (folder / f"part-{number}.csv").write_text(f"mcc,mcc_limit\n{number},{number}\n")
    assert read(begun(tmp_path, limits=LIMITS))["limits"].column("mcc").to_pylist() == ["1", "2"]
    (folder / "part-1.csv").write_text("mcc\n1\n")
    assert "limits.csv/part-1.csv has no column mcc_limit" in problems(LIMITS, tmp_path)[0]


def test_the_good_version_of_one_table_comes_though_another_is_bad(tmp_path: Path) -> None:
    (tmp_path / "limits.csv").write_text(rows())
    pq.write_table(cards("a"), tmp_path / "cards.parquet")
    tables = begun(tmp_path, limits=LIMITS, cards=CARDS)
    before = dict(tables.taken)
    (tmp_path / "limits.csv").write_text("")
    pq.write_table(cards("b"), tmp_path / "cards.parquet")
    assert tables.poll()
    tables.take()
    assert tables.taken["limits"] == before["limits"]
    assert tables.taken["cards"] != before["cards"]
    assert len(tables.alarms()) == 1


def test_a_restart_with_a_bad_file_reads_the_last_good_version(tmp_path: Path) -> None:
    (tmp_path / "limits.csv").write_text(rows())
    first = begun(tmp_path, limits=LIMITS)
    os.truncate(tmp_path / "limits.csv", 40)
    second = begun(tmp_path, limits=LIMITS)
    assert second.taken == first.taken
    assert read(second)["limits"].num_rows == 20
    assert len(second.alarms()) == 1


def test_declared_bounds_decide_how_many_rows_are_good(tmp_path: Path) -> None:
    file = tmp_path / "limits.csv"
    file.write_text(rows())
    tables = begun(tmp_path, limits=LIMITS.model_copy(update={"shrinks_to": 0.0, "may_be_empty": True}))
    for content in (rows(1), "mcc,mcc_limit\n", rows()):
        file.write_text(content)
        assert tables.poll()
        tables.take()


def test_copies_without_a_folder_of_their_own_live_as_long_as_the_tables(tmp_path: Path) -> None:
    (tmp_path / "limits.csv").write_text(rows())
    tables = ReferenceTables({"limits": LIMITS}, tmp_path)
    [copy] = [tables._tables["limits"].path(digest) for digest in tables.take().values()]
    assert copy.exists()
    del tables
    gc.collect()
    assert not copy.exists()


def test_a_detector_without_tables_has_none(tmp_path: Path) -> None:
    tables = ReferenceTables({}, tmp_path)
    assert (tables.take(), tables.poll(), tables.alarms(), read(tables)) == ({}, False, [], {})


@pytest.mark.parametrize("log", ["_delta_log", ".hoodie"])
def test_a_folder_whose_files_do_not_all_count_is_refused(log: str, tmp_path: Path) -> None:
    folder = tmp_path / "cards"
    (folder / log).mkdir(parents=True)
    pq.write_table(cards("a"), folder / "part-0.parquet")
    assert problems(Table(path="cards"), tmp_path) == (
        f"cards has a {log}, which says which files count; write plain Parquet",
    )


NOON = datetime(2026, 3, 1, 12)


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (pa.array([time(12)] * 20), "the column x of type time64[us], which Spark cannot read"),
        (pa.array([[time(12)]] * 20), "the column x of type time64[us], which Spark cannot read"),
        (pa.array([1.0] * 20, pa.float32()).cast(pa.float16()), "the column x of type halffloat"),
        (pa.array([Decimal(1)] * 20, pa.decimal256(50, 2)), "the column x of type decimal256(50, 2)"),
    ],
)
def test_a_parquet_file_that_spark_cannot_read_is_refused_by_its_column(column: Any, why: str, tmp_path: Path) -> None:
    file = tmp_path / "cards.parquet"
    pq.write_table(cards("a", "b"), file)
    tables = begun(tmp_path, cards=CARDS)
    pq.write_table(cards("a", "b").append_column("x", column), file)
    assert not tables.poll()
    assert why in tables.alarms()[0]


def test_columns_that_differ_in_case_alone_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"card_id": ["a"], "CARD_ID": ["b"]}), tmp_path / "cards.parquet")
    assert problems(CARDS, tmp_path) == ("cards.parquet has the columns card_id, CARD_ID, which Spark takes for one",)
    (tmp_path / "limits.csv").write_text("mcc,MCC\n1,2\n")
    declared = Table(path="limits.csv", columns="mcc string, MCC string")
    assert problems(declared, tmp_path) == ("columns: the columns mcc, MCC, which Spark takes for one",)


@pytest.mark.parametrize("folder", [False, True])
def test_times_in_nanoseconds_as_pandas_writes_them_are_read_in_microseconds(folder: bool, tmp_path: Path) -> None:
    file = tmp_path / "cards.parquet"
    if folder:
        (file / "country=DE").mkdir(parents=True)
    written = file / "country=DE" / "part-0.parquet" if folder else file
    nanos = pa.array([1_772_366_400_000_000_001], pa.timestamp("ns", "UTC"))
    pq.write_table(
        pa.table({"card_id": ["a"], "at": nanos, "all": pa.array([[NOON]], pa.list_(pa.timestamp("ns")))}), written
    )
    found = read(begun(tmp_path, cards=CARDS))["cards"]
    assert found.schema.field("at").type == pa.timestamp("us", "UTC")
    assert found.column("at").to_pylist() == [NOON.replace(tzinfo=UTC)]
    assert found.column("all").to_pylist() == [[NOON]]
    assert found.column_names == ["card_id", "at", "all", *["country"] * folder]


def test_what_spark_reads_as_the_same_type_is_no_other_type(tmp_path: Path) -> None:
    file = tmp_path / "cards.parquet"
    ids, times = pa.array(["a"] * 20), pa.array([NOON] * 20)
    pq.write_table(pa.table({"card_id": ids, "at": times.cast(pa.timestamp("ms", "UTC"))}), file)
    tables = begun(tmp_path, cards=CARDS)
    for id_type in (pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.string()):
        for unit in ("ns", "us"):
            at = times.cast(pa.timestamp(unit, "Europe/Berlin"))
            pq.write_table(pa.table({"card_id": ids.cast(id_type), "at": at}), file)
            assert (tables.poll(), tables.alarms()) == (True, [])
            tables.take()

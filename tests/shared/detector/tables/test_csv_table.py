"""A CSV file is read by its header into typed columns, or everything that is wrong with it is named with its line."""

import csv
import io
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lozenge.detector.tables.csv_table import CsvTable, read
from lozenge.platform_tables.column_types import column_types, sql_name

COLUMNS = column_types("mcc string, mcc_limit decimal(18,4)")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "limits.csv"


def found(file: Path, content: bytes | str, columns: Any = COLUMNS) -> CsvTable:
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read([(file.name, file)], columns)


def test_columns_are_found_by_their_names_and_others_are_ignored(file: Path) -> None:
    table = found(file, "note,mcc_limit,mcc\nx,10.5,5411\n")
    assert table.rows.to_pylist() == [{"mcc": "5411", "mcc_limit": Decimal("10.5000")}]
    assert (table.problems, table.terminated) == ([], True)


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfmcc,mcc_limit\r\n0742,1\r\n",
        b'"mcc","mcc_limit"\n\n"0742","1"\n\n',
        b"mcc,mcc_limit\n0742,1",
    ],
    ids=["BOM and CRLF", "quotes and empty lines", "no last line break"],
)
def test_what_other_programs_save_is_read(content: bytes, file: Path) -> None:
    table = found(file, content)
    assert table.problems == []
    assert table.rows.to_pylist() == [{"mcc": "0742", "mcc_limit": Decimal(1)}]
    assert table.terminated == content.endswith(b"\n")


def test_a_header_alone_is_a_table_without_rows(file: Path) -> None:
    assert found(file, "mcc,mcc_limit\n").rows.num_rows == 0


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "limits.csv has no column mcc, mcc_limit; its columns are none"),
        ("mcc;mcc_limit\n1;2\n", "has no column mcc, mcc_limit; its columns are mcc;mcc_limit"),
        ("mcc,limit\n1,2\n", "has no column mcc_limit; its columns are mcc, limit"),
        ("mcc,mcc,mcc_limit\n1,1,2\n", "has the column mcc more than once"),
        ("mcc,mcc_limit\n1,2\n5411\n", "limits.csv line 3 has 1 fields, the header 2"),
        ("mcc,mcc_limit\n1,2,3\n", "limits.csv line 2 has 3 fields, the header 2"),
        ('mcc,mcc_limit\n1,"2\n3', "limits.csv line 3: unexpected end of data"),
        (b"mcc,mcc_limit\nK\xf6ln,2\n", "limits.csv is not UTF-8: byte 0xf6 at 15; save it as UTF-8"),
        (b"mcc,mcc_limit\n" + b"\x00\xff\xfe" * 9, "limits.csv is not UTF-8"),
        ("mcc,mcc_limit\n1,x\n", "limits.csv line 2: mcc_limit is 'x', which is no decimal(18,4)"),
        ("mcc,mcc_limit\n1,1.23456\n", "mcc_limit is '1.23456', which is no decimal(18,4)"),
        ("mcc,mcc_limit\n1," + "9" * 15 + "\n", "which is no decimal(18,4)"),
        ('mcc,mcc_limit\n1,"1,5"\n', "mcc_limit is '1,5', which is no decimal(18,4)"),
        ("mcc,mcc_limit\n" + "x" * 200_000 + ",1\n", "field larger than field limit"),
    ],
)
def test_a_bad_file_is_named_with_line_and_cause(content: bytes | str, why: str, file: Path) -> None:
    table = found(file, content)
    assert why in "; ".join(table.problems)
    assert table.rows.num_rows == 0, "nothing of it may be used"


def test_a_column_that_is_not_null_has_a_value_in_each_line(file: Path) -> None:
    file.write_text("mcc,mcc_limit\n5411,1\n5412,\n,3\n")
    assert read([(file.name, file)], COLUMNS).problems == []
    assert read([(file.name, file)], COLUMNS, {"mcc_limit"}).problems == [
        "limits.csv line 3: mcc_limit is empty, and it is NOT NULL"
    ]


def test_all_problems_of_a_file_are_named_at_once_up_to_a_limit(file: Path) -> None:
    assert len(found(file, "mcc,mcc_limit\n1,x\n2\n3,y\n").problems) == 3
    many = found(file, "mcc,mcc_limit\n" + "1,x\n" * 1_000).problems
    assert (len(many), many[-1]) == (11, "and 990 more")
    assert found(file, "mcc,mcc_limit\n" + "1,x\n" * 20_000).problems[-1] == "and at least 9990 more"


def test_a_wrong_value_is_found_wherever_it_is(file: Path) -> None:
    rows = [f"{number},{number}\n" for number in range(10_000)]
    for place in (0, 4_095, 4_096, 9_999):
        rows[place] = "1,x\n"
    problems = found(file, "mcc,mcc_limit\n" + "".join(rows)).problems
    assert [problem.partition(":")[0] for problem in problems] == [
        f"limits.csv line {place + 2}" for place in (0, 4_095, 4_096, 9_999)
    ]


def test_an_empty_field_is_null(file: Path) -> None:
    assert found(file, "mcc,mcc_limit\n,\n").rows.to_pylist() == [{"mcc": None, "mcc_limit": None}]


def test_every_declared_type_is_read(file: Path) -> None:
    kinds = (
        "a int, b bigint, c double, d boolean, e date, f timestamp, g timestamp, h smallint, i float, j timestamp_ntz"
    )
    table = found(
        file,
        "a,b,c,d,e,f,g,h,i,j\n"
        "1,2,1e3,true,2026-03-01,2026-03-01T12:00:00+01:00,2026-03-01 12:00:00,3,0.5,2026-03-01\n"
        ",,,,,,,,,\n",
        column_types(kinds),
    )
    assert table.problems == []
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert [*table.rows.to_pylist()[0].values()] == [
        *(1, 2, 1000.0, True, date(2026, 3, 1), noon.replace(hour=11), noon, 3, 0.5, datetime(2026, 3, 1))
    ]
    assert {*table.rows.to_pylist()[1].values()} == {None}


@pytest.mark.parametrize("kind", ["int", "double", "boolean", "date", "timestamp"])
def test_a_text_of_another_type_is_a_problem(kind: str, file: Path) -> None:
    assert "which is no " + kind in found(file, "a\nmany\n", column_types(f"a {kind}")).problems[0]


def test_columns_are_declared_as_spark_spells_them() -> None:
    assert column_types("mcc: STRING, `a b` Decimal( 18 , 4 ),n integer") == {
        "mcc": pa.string(),
        "a b": pa.decimal128(18, 4),
        "n": pa.int32(),
    }
    assert sql_name(pa.decimal128(18, 4)) == "decimal(18,4)"


def test_every_column_that_cannot_be_read_is_named() -> None:
    with pytest.raises(
        ValueError,
        match=r"columns: ',' is not expected: a type is; strin is no .*; decimal\(4,9\): .*; e is there twice",
    ):
        column_types("mcc, mcc strin, d decimal(4,9), e bigint, e int")
    with pytest.raises(ValueError, match="columns: no CSV file holds the type of a, i; types are string"):
        column_types("mcc string, a array<int>, i interval day")


def test_a_column_is_found_in_upper_or_lower_case_unless_two_are_alike(file: Path) -> None:
    types = column_types("MCC string")
    assert found(file, " mcc,note\n0742,x\n", types).rows.to_pylist() == [{"MCC": "0742"}]
    assert found(file, "mcc,MCC\n1,2\n", types).rows.to_pylist() == [{"MCC": "2"}]
    assert "has no column MCC" in found(file, "mcc,Mcc\n1,2\n", types).problems[0]


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_a_file_of_another_separator_is_refused_with_the_one_that_counts(separator: str, file: Path) -> None:
    [problem] = found(file, f"mcc{separator}mcc_limit\n1{separator}2\n").problems
    assert problem.endswith(f"; commas separate columns, not {separator!r}")


_TEXTS = st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), min_size=1, max_size=20)
"""Python's writer puts no quotes around the other end of a line."""
_ROWS = st.lists(
    st.tuples(
        _TEXTS,
        st.none() | st.integers(-(2**31), 2**31 - 1),
        st.none() | st.decimals(-99_999, 99_999, places=2),
        st.none() | st.dates(),
        st.none() | st.booleans(),
    ),
    max_size=6,
)


@given(
    _ROWS,
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.permutations(range(5)),
)
def test_rows_of_any_values_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]], end: str, quoting: Any, order: list[int]
) -> None:
    names = ["a", "b", "c", "d", "e"]
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator=end, quoting=quoting)
    writer.writerow([names[at] for at in order])
    writer.writerows(["" if row[at] is None else row[at] for at in order] for row in rows)
    file = tmp_path_factory.getbasetemp() / "any.csv"
    columns = column_types("a string, b int, c decimal(9,2), d date, e boolean")
    table = found(file, out.getvalue(), columns)
    assert table.problems == []
    assert table.rows.to_pylist() == [dict(zip(names, row, strict=True)) for row in rows]


@given(
    st.binary(max_size=80) | st.text("mcc_limit,\"';\n\r\t 019.-ex\ufeff", max_size=60).map("mcc,mcc_limit\n{}".format)
)
def test_any_file_is_a_table_or_is_refused_as_a_whole(
    tmp_path_factory: pytest.TempPathFactory, content: bytes | str
) -> None:
    table = found(tmp_path_factory.getbasetemp() / "junk.csv", content)
    assert not (table.problems and table.rows.num_rows)
    assert table.rows.schema.names == ["mcc", "mcc_limit"]

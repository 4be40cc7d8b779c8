"""Each format: a file that is read on from any place gives the same rows, and what cannot be read is named."""

import io
import json
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lozenge.file_sources.definition import Format
from lozenge.protocol.file_positions import Place
from lozenge_upstream.files.copying import READERS
from lozenge_upstream.files.pieces import MOST_BYTES, UnreadableFile
from tests.upstream.files.samples import SUFFIXES, ids, pieces, rows_of, source_of, write

EVERY = pytest.mark.parametrize("format", Format)


def _content(folder: Path, format: Format, count: int) -> bytes:
    file = folder / f"a.{SUFFIXES[format]}"
    write(file, format, rows_of("a", count))
    return file.read_bytes()


@EVERY
def test_a_file_read_on_from_any_place_gives_the_rest_of_its_rows_once(tmp_path: Path, format: Format) -> None:
    content, source, chance = _content(tmp_path, format, 57), source_of(tmp_path, format), Random(3)
    whole = pieces(content, source, size=lambda: chance.randint(1, 13))
    expected = [row["id"] for row in rows_of("a", 57)]
    assert ids(whole) == expected
    assert [number for piece in whole for number, *_ in piece.rows] == [*range(57)]
    for piece in whole:
        rest = pieces(content, source, piece.end, lambda: chance.randint(1, 13))
        assert ids(rest) == expected[piece.end.rows :]
        assert [number for each in rest for number, *_ in each.rows] == [*range(piece.end.rows, 57)]


@EVERY
def test_an_integer_and_the_key_are_those_of_the_row(tmp_path: Path, format: Format) -> None:
    _, key, value = pieces(_content(tmp_path, format, 9), source_of(tmp_path, format))[2].rows[0]
    amount = json.loads(value)["amount"]
    assert key == b"c1"
    assert amount == ("8" if format is Format.CSV else 8)


@EVERY
def test_a_file_without_rows_has_one_piece_without_rows(tmp_path: Path, format: Format) -> None:
    found = pieces(_content(tmp_path, format, 0), source_of(tmp_path, format))
    assert [(piece.rows, piece.bad, piece.end.rows) for piece in found] == [([], [], 0)]


@pytest.mark.parametrize("format", [Format.PARQUET, Format.AVRO, Format.CSV])
def test_an_empty_file_is_unreadable(tmp_path: Path, format: Format) -> None:
    with pytest.raises(UnreadableFile):
        READERS[format].layout(io.BytesIO(b""), source_of(tmp_path, format))


@pytest.mark.parametrize("format", [Format.PARQUET, Format.AVRO])
def test_a_damaged_file_gives_its_first_rows_and_then_says_where_it_is_damaged(tmp_path: Path, format: Format) -> None:
    content, source = bytearray(_content(tmp_path, format, 500)), source_of(tmp_path, format)
    whole = len(ids(pieces(bytes(content), source)))
    middle = len(content) // 2
    content[middle : middle + 60] = b"\xff" * 60
    read = list[str]()

    def reads() -> None:
        for piece in READERS[format].pieces(io.BytesIO(bytes(content)), source, Place(), lambda: 4):
            read.extend(ids([piece]))

    with pytest.raises(UnreadableFile, match="damaged"):
        reads()
    assert whole == 500
    assert read == [row["id"] for row in rows_of("a", len(read))]


def test_bad_lines_of_json_harm_no_other_line(tmp_path: Path) -> None:
    source = source_of(tmp_path, Format.JSON_LINES)
    lines = [b'{"id":"a","card":"c"}', b"{", b"[]", b"\xff", b'{"id":"b"}', b"", b'{"id":"c","card":"c"}']
    found = pieces(b"\n".join(lines), source)
    assert ids(found) == ["a", "c"]
    bad = {row.number: row.problem for piece in found for row in piece.bad}
    assert [*bad] == [1, 2, 3, 4]
    assert "no object" in bad[2]
    assert "key" in bad[4]


def test_a_line_that_is_too_long_is_bad_and_the_next_one_is_read(tmp_path: Path) -> None:
    long = b'{"id":"' + b"x" * (3 * MOST_BYTES) + b'"}'
    found = pieces(long + b'\n{"id":"b","card":"c"}\n', source_of(tmp_path, Format.JSON_LINES))
    assert ids(found) == ["b"]
    assert [row.number for piece in found for row in piece.bad] == [0]
    assert all(len(row.value) <= MOST_BYTES for piece in found for row in piece.bad)


def test_a_line_without_an_end_waits_in_a_file_that_may_grow(tmp_path: Path) -> None:
    growing, fixed = (source_of(tmp_path, Format.JSON_LINES, appendable=each) for each in (True, False))
    content = b'{"id":"a","card":"c"}\n{"id":"b","card":"c"}'
    assert ids(pieces(content, fixed)) == ["a", "b"]
    found = pieces(content, growing)
    assert ids(found) == ["a"]
    assert ids(pieces(content + b"\n", growing, found[-1].end)) == ["b"]


def test_a_quoted_field_of_csv_may_have_line_ends_quotes_and_delimiters(tmp_path: Path) -> None:
    content = b'id,card,amount\r\n"a\r\n""x"", y",c,1\r\nb,c,2\r\n'
    assert ids(pieces(content, source_of(tmp_path, Format.CSV))) == ['a\r\n"x", y', "b"]


def test_bad_rows_of_csv_harm_no_other_row(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbfid,card,amount\na,c,1\nb,c\nc,\xff,1\nd,"c,1\ne,c,1\n\nf,,1\n'
    found = pieces(content, source_of(tmp_path, Format.CSV))
    assert ids(found) == ["a", "e"]
    assert [row.number for piece in found for row in piece.bad] == [1, 2, 3, 5]


def test_columns_of_csv_may_come_in_another_order(tmp_path: Path) -> None:
    assert ids(pieces(b"amount,id,card\n1,a,c\n", source_of(tmp_path, Format.CSV))) == ["a"]


def test_a_column_that_is_named_twice_is_unreadable(tmp_path: Path) -> None:
    source = source_of(tmp_path, Format.CSV)
    with pytest.raises(UnreadableFile, match="id twice"):
        READERS[Format.CSV].layout(io.BytesIO(b"id,id\n"), source)


def test_a_row_of_parquet_that_is_not_utf8_is_bad_and_the_others_are_read(tmp_path: Path) -> None:
    raw = b"ab\xffd"
    ends = b"".join(end.to_bytes(4, "little") for end in range(5))
    broken = pa.Array.from_buffers(pa.string(), 4, [None, pa.py_buffer(ends), pa.py_buffer(raw)])
    good, amounts = pa.array(["k", "l", "m", "n"]), pa.array([1, 2, 3, 4])
    source = source_of(tmp_path, Format.PARQUET)
    for columns in ({"id": broken, "card": good}, {"id": good, "card": broken}):
        pq.write_table(pa.table({**columns, "amount": amounts}), tmp_path / "a.parquet")
        found = pieces((tmp_path / "a.parquet").read_bytes(), source)
        assert [number for piece in found for number, *_ in piece.rows] == [0, 1, 3]
        [bad] = [row for piece in found for row in piece.bad]
        assert bad.number == 2
        assert bad.problem.startswith("row group 0: ")

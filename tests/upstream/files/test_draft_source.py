import json
from pathlib import Path

import pytest

from lozenge.errors import UsageError
from lozenge.file_sources.definition import Format
from lozenge_upstream.files.draft_source import answer
from tests.upstream.files.samples import AVRO_COLUMNS, COLUMNS, SUFFIXES, TEXT_COLUMNS, rows_of, write


@pytest.mark.parametrize(
    ("format", "columns"),
    [
        (Format.PARQUET, COLUMNS),
        (Format.AVRO, AVRO_COLUMNS),
        (Format.CSV, TEXT_COLUMNS),
        (Format.JSON_LINES, {}),
    ],
)
def test_a_file_says_its_columns(tmp_path: Path, format: Format, columns: dict[str, str]) -> None:
    file = tmp_path / f"a.{SUFFIXES[format]}"
    write(file, format, rows_of("a", 3))
    assert json.loads(answer(str(file), format, ","))["columns"] == columns


def test_a_file_that_is_not_there_is_no_matter_of_its_format(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"missing\.parquet: it does not exist") as raised:
        answer(str(tmp_path / "missing.parquet"), Format.PARQUET, ",")
    assert "--format" not in raised.value.hint


def test_what_cannot_be_read_is_an_error_for_a_person(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n")
    for file, format in (("missing.csv", Format.CSV), ("a.csv", Format.PARQUET)):
        with pytest.raises(UsageError, match="reading"):
            answer(str(tmp_path / file), format, ",")

import json
from pathlib import Path

import pytest

from lozenge.errors import UsageError
from lozenge.file_sources.definition import Format
from lozenge_upstream.files.check_source import answer
from tests.upstream.files.samples import rows_of, source_of, write


def test_each_file_has_its_rows_or_its_problem(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", Format.PARQUET, rows_of("a", 12))
    (tmp_path / "b.parquet").write_bytes(b"PAR1 nothing")
    found = {each["file"]: each for each in json.loads(answer(source_of(tmp_path, Format.PARQUET)))}
    assert (found["a.parquet"]["rows"], found["a.parquet"]["problem"]) == (12, "")
    assert "not of Parquet" in found["b.parquet"]["problem"]


def test_columns_that_differ_are_the_problem_of_a_file(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", Format.CSV, rows_of("a", 3))
    source = source_of(tmp_path, Format.CSV, columns={"id": "text", "card": "text"}, key="card")
    [found] = json.loads(answer(source))
    assert found["problem"] == "amount (text): it is not declared"


def test_a_folder_that_is_not_there_is_an_error_for_a_person(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="missing"):
        answer(source_of(tmp_path / "missing", Format.CSV))

from pathlib import Path

import pytest

from lozenge.errors import ConfigError, UsageError
from lozenge.file_sources.definition import drift
from lozenge.file_sources.folder import names_in, read, sources_folder

SOUND = """title = "Payments of the night"
owner = "payments"
path = "/data/*.parquet"
format = "parquet"
topic = "AUTH-FILES"
key = "card_number"
[columns]
card_number = "string"
"""


def _folder(tmp_path: Path, text: str, name: str = "night") -> Path:
    folder = tmp_path / name
    folder.mkdir(parents=True)
    (folder / "source.toml").write_text(text)
    return folder


def _problems(tmp_path: Path, text: str, name: str = "night") -> str:
    with pytest.raises(ConfigError) as raised:
        read(_folder(tmp_path, text, name))
    return "\n".join(raised.value.problems)


def test_a_declaration_is_read_with_the_name_of_its_folder(tmp_path: Path) -> None:
    source = read(_folder(tmp_path, SOUND))
    assert (source.name, source.app) == ("night", "files-night")
    assert (source.base, source.pattern) == ("/data", "*.parquet")


@pytest.mark.parametrize(
    ("path", "base", "pattern"),
    [
        ("/data", "/data", "*"),
        ("/data/", "/data/", "*"),
        ("/data/2026-*/x/*.csv", "/data", "2026-*/x/*.csv"),
        ("/d?ta/*.csv", "/", "d?ta/*.csv"),
        ("s3://bucket/in/**/*.avro", "s3://bucket/in", "**/*.avro"),
    ],
)
def test_the_base_of_a_pattern_is_before_its_first_wildcard(tmp_path: Path, path: str, base: str, pattern: str) -> None:
    source = read(_folder(tmp_path, SOUND.replace("/data/*.parquet", path)))
    assert (source.base, source.pattern) == (base, pattern)


def test_all_problems_of_a_declaration_are_named_at_once(tmp_path: Path) -> None:
    text = 'owner = " "\npath = "/x"\nformat = "xml"\ntopic = "a b"\nmax_bad = 2\npol = "1s"\nquiet = "soon"\n'
    found = _problems(tmp_path, text)
    assert "source.toml: title: it is missing" in found
    for line, key in enumerate(("owner", "path", "format", "topic", "max_bad", "pol", "quiet"), 1):
        assert (f"source.toml line {line}: {key}: " in found) == (key != "path")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (('topic = "AUTH-FILES"', 'topic = "pay.canonical.auth.v1"'), "the platform writes"),
        (('key = "card_number"', 'key = "card"'), "there is no column card"),
        (('format = "parquet"', 'format = "json-lines"'), "lines of JSON have none"),
        (('[columns]\ncard_number = "string"\n', ""), "name each column"),
        (('format = "parquet"', 'format = "parquet"\nappendable = true'), "only CSV and lines of JSON can grow"),
        (('format = "parquet"', 'format = "parquet"\nafter = "move"'), "the folder of files that were copied"),
        (
            ('format = "parquet"', 'format = "parquet"\nafter = "move"\nmove_to = "/data/"'),
            "another folder than that of the files",
        ),
        (('format = "parquet"', 'format = "csv"\nappendable = true\nafter = "delete"'), "a file that grows is kept"),
        (('format = "parquet"', 'format = "parquet"\npoll = "0s"'), "longer than nothing"),
    ],
)
def test_what_does_not_fit_together_is_a_problem(tmp_path: Path, change: tuple[str, str], problem: str) -> None:
    assert problem in _problems(tmp_path, SOUND.replace(*change))


@pytest.mark.parametrize(
    ("format", "kind", "problem"),
    [
        ("parquet", "decimal(18", "decimal(18 is no type of Arrow"),
        ("avro", "decimal(18", "decimal(18 is neither the name of a type of Avro nor its JSON"),
        ("csv", "string", 'each column of CSV is "text", and not string'),
    ],
)
def test_a_type_that_no_column_of_the_format_has_is_a_problem_with_its_line(
    tmp_path: Path, format: str, kind: str, problem: str
) -> None:
    text = SOUND.replace('"parquet"', f'"{format}"').replace('"string"', f'"{kind}"')
    assert f"source.toml line 8: columns.card_number: {problem}" in _problems(tmp_path, text)


def test_a_declaration_has_no_name_of_its_own(tmp_path: Path) -> None:
    assert "name" in _problems(tmp_path, 'name = "other"\n' + SOUND)


def test_a_folder_whose_name_is_none_is_refused(tmp_path: Path) -> None:
    assert "lower-case" in _problems(tmp_path, SOUND, "Night-1")


@pytest.mark.parametrize(("content", "problem"), [(b"a = ", "not TOML"), (b"\xff", "not UTF-8")])
def test_what_is_no_toml_is_a_problem(tmp_path: Path, content: bytes, problem: str) -> None:
    folder = _folder(tmp_path, "")
    (folder / "source.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=problem):
        read(folder)


def test_a_source_that_is_not_there_names_those_there_are(tmp_path: Path) -> None:
    _folder(tmp_path, SOUND)
    with pytest.raises(UsageError, match="there are: night"):
        read(tmp_path / "day")
    assert names_in(tmp_path) == ["night"]
    assert names_in(tmp_path / "missing") == []


def test_the_folder_of_sources_is_above_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "upstream" / "sources"
    (tmp_path / "deep").mkdir(parents=True)
    home.mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep")
    monkeypatch.delenv("LOZENGE_SOURCES", raising=False)
    assert sources_folder() == home
    monkeypatch.setenv("LOZENGE_SOURCES", str(tmp_path))
    assert sources_folder() == tmp_path


def test_columns_that_differ_are_named_whatever_their_order() -> None:
    assert drift({"a": "int64", "b": "string"}, {"b": "string", "a": "int64"}) == []
    assert drift({"a": "int64", "b": "string"}, {"a": "double", "c": "bool"}) == [
        "b: it is missing",
        "c (bool): it is not declared",
        "a: it is double, declared as int64",
    ]

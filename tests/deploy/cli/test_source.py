"""Commands on a file source that are refused before any broker is asked."""

from pathlib import Path

import pytest

from tests.deploy.command import invoke

DECLARED = """title = "t"
owner = "o"
path = "{path}"
format = "csv"
topic = "ROWS"
complete = "rename"
[columns]
card = "{kind}"
"""


def refused(project: Path, *arguments: str, code: int) -> str:
    """What a command says that is refused; no broker answers it."""
    run = invoke(*arguments, cwd=project, LOZENGE_KAFKA_BOOTSTRAP="127.0.0.1:9")
    assert run.returncode == code, run.stdout + run.stderr
    return run.stderr


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("LOZENGE_SOURCES", raising=False)
    (tmp_path / "upstream" / "sources" / "night").mkdir(parents=True)
    return tmp_path


def declare(project: Path, path: Path, kind: str = "text") -> None:
    declaration = project / "upstream" / "sources" / "night" / "source.toml"
    declaration.write_text(DECLARED.format(path=path, kind=kind))


@pytest.mark.parametrize("verb", ["check", "deploy"])
def test_a_source_whose_folder_is_missing_is_neither_sound_nor_deployed(project: Path, verb: str) -> None:
    declare(project, project / "missing")
    assert "make the folder, or change path" in refused(project, "source", verb, "night", code=2)


@pytest.mark.parametrize("verb", ["check", "deploy"])
def test_a_column_of_no_type_is_neither_sound_nor_deployed(project: Path, verb: str) -> None:
    declare(project, project, "decimal(18")
    assert "source.toml line 8: columns.card: " in refused(project, "source", verb, "night", code=2)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["pause", "files-night"], "`lozenge source pause night` does it"),
        (["resume", "files-night"], "`lozenge source resume night` does it"),
        (["retire", "files-night"], "`lozenge source retire night` does it"),
        (["history", "files-night"], "`lozenge source history night` does it"),
        (["scale", "files-night", "--instances", "2"], "`lozenge source scale night --instances 2` does it"),
        (["restart", "files-night"], "`lozenge source pause night`, then `lozenge source resume night`"),
    ],
)
def test_a_command_for_detectors_names_that_for_a_file_source(project: Path, arguments: list[str], hint: str) -> None:
    said = refused(project, *arguments, code=2)
    assert "files-night here: it is a file source, and no detector" in said
    assert hint in said

"""Every problem of a detector folder is reported at once, each with its file and its fix."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lozenge_deploy.cli.author.scaffold import write
from lozenge_deploy.releases.lint.folder import problems


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "spotter", "aggregate", "somebody")
    return tmp_path / "spotter"


def edit(file: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / file).read_text()
        assert old in text
        (folder / file).write_text(text.replace(old, new))

    return change


def remove(file: str) -> Callable[[Path], None]:
    return lambda folder: (folder / file).unlink()


TABLE = '[tool.lozenge.tables]\nlimits = { path = "limits.csv", columns = "mcc string" }\n'


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (remove("pyproject.toml"), "pyproject.toml: missing"),
        (edit("pyproject.toml", "[project]", "[project"), "pyproject.toml: "),
        (
            edit("pyproject.toml", 'name = "spotter"', 'name = "other"'),
            "project.name is other, but the folder is spotter",
        ),
        (edit("pyproject.toml", 'window = "10m"', ""), "pyproject.toml: tool.lozenge"),
        (
            edit("pyproject.toml", 'include = ["*"]', 'include = ["spotter.py"]'),
            "would lack pyproject.toml: [tool.hatch",
        ),
        (edit("pyproject.toml", ".spotter:detector", ":detector"), "project.entry-points.lozenge.detectors must be"),
        (edit("pyproject.toml", 'window = "10m"', f'window = "10m"\n{TABLE}'), "limits.csv: missing"),
        (remove("spotter.py"), "spotter.py: missing"),
        (edit("spotter.py", "def detect", "def detect("), "spotter.py: "),
        (edit("spotter.py", "It misses", "It ignores"), "spotter.py: say in its docstring"),
        (edit("spotter.py", "detector = Detector", "other = Detector"), "spotter.py: end it with detector ="),
        (remove("README.md"), "README.md: missing"),
        (edit("README.md", "# spotter", "# Spotter"), "README.md: begin with # spotter"),
        (edit("README.md", "## Runbook", "## Run book"), "README.md: its sections are"),
        (edit("README.md", "somebody", "nobody"), "README.md: name the owner, somebody"),
        (edit("README.md", "`window`", "window"), "README.md: explain the setting `window`"),
        (remove("test_spotter.py"), "test_spotter.py: missing"),
        (edit("test_spotter.py", "test_stays_silent", "test_is_silent"), "add a test test_stays_silent"),
        (
            edit("test_spotter.py", "    assert ", "    str() or "),
            "test_fires_when_the_limit_is_reached asserts nothing",
        ),
    ],
)
def test_each_problem_is_reported(folder: Path, change: Callable[[Path], None], complaint: str) -> None:
    assert problems(folder) == []
    change(folder)
    assert any(complaint in problem for problem in problems(folder)), problems(folder)


def test_a_table_with_other_columns_than_declared_is_reported(folder: Path) -> None:
    edit("pyproject.toml", 'window = "10m"', f'window = "10m"\n{TABLE}')(folder)
    (folder / "limits.csv").write_text("code\n5411\n")
    assert "limits.csv: its columns are ['code'], declared are ['mcc']" in problems(folder)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "has no column mcc; its columns are none"),
        (b"mcc\n", "it has no rows"),
        (b"mcc\nK\xf6ln\n", "is not UTF-8: byte 0xf6"),
        (b"mcc\n5411,2\n", "line 2 has 2 fields, the header 1"),
        (b"\xef\xbb\xbfmcc\r\n5411\r\n", ""),
        (b"note,mcc\nx,5411\n", ""),
    ],
)
def test_a_table_is_checked_as_a_job_reads_it(folder: Path, content: bytes, complaint: str) -> None:
    edit("pyproject.toml", 'window = "10m"', f'window = "10m"\n{TABLE}')(folder)
    (folder / "limits.csv").write_bytes(content)
    found = [problem for problem in problems(folder) if problem.startswith("limits.csv: ")]
    assert [complaint in problem for problem in found] == [True] * bool(complaint)


def test_all_problems_are_reported_at_once(folder: Path) -> None:
    for file in ("spotter.py", "README.md", "test_spotter.py"):
        (folder / file).unlink()
    assert len(problems(folder)) == 3

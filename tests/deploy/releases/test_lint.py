"""Every problem of a detector folder is reported at once, each with its file and its fix."""

import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lozenge_deploy.cli.author.scaffold import write
from lozenge_deploy.releases.lint.folder import findings, problems
from lozenge_deploy.releases.lint.wheel import contents_of
from tests.streams import AUTH


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "spotter", "aggregate", "somebody", AUTH)
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
    assert "limits.csv: has no column mcc; its columns are code" in problems(folder)


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


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("from features import LIMIT", "line 1: the folder is the package spotter: write `from .features import ...`"),
        ("import features", "line 1: the folder is the package spotter: write `from .features import ...`"),
        ("from sub.deep import x", "line 1: the folder is the package spotter: write `from .sub.deep import ...`"),
        ("from .feature import LIMIT", "line 1: .feature is not in the folder"),
        ("from spotter.feature import LIMIT", "line 1: spotter.feature is not in the folder"),
        ("from ..features import LIMIT", "line 1: ..features is outside of the folder"),
        ("from neighbour.neighbour import detect", "line 1: neighbour is another detector"),
        ("def later():\n    import features", "line 2: the folder is the package spotter"),
    ],
)
@pytest.mark.parametrize("file", ["spotter.py", "rules.py", "test_spotter.py", "conftest.py"])
def test_an_import_that_no_release_has_is_reported_with_its_line(
    folder: Path, file: str, written: str, complaint: str
) -> None:
    write(folder.parent, "neighbour", "rule", "somebody", AUTH)
    (folder / "features.py").write_text("LIMIT = 1\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "deep.py").write_text("x = 1\n")
    before = (folder / file).read_text() if (folder / file).exists() else ""
    (folder / file).write_text(f"{written}\n{before}")
    assert any(f"{file}: {complaint}" in problem for problem in findings(folder).faults), problems(folder)


@pytest.mark.parametrize(
    "written",
    [
        "from .features import LIMIT",
        "from . import features",
        "from spotter.features import LIMIT",
        "import spotter.features",
        "from .sub import deep",
        "from .sub.deep import x",
        "import json, decimal",
        "try:\n    from features import LIMIT\nexcept ImportError:\n    LIMIT = 1",
    ],
)
def test_imports_that_a_release_has_are_no_problem(folder: Path, written: str) -> None:
    (folder / "features.py").write_text("LIMIT = 1\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "deep.py").write_text("x = 1\n")
    (folder / "rules.py").write_text(f"{written}\n")
    assert problems(folder) == []


@pytest.mark.parametrize(
    "last",
    [
        "detector: Detector[Spotter] = Detector(detect, settings=Spotter)",
        "if True:\n    detector = Detector(detect, settings=Spotter)",
        "_made = detector = Detector(detect, settings=Spotter)",
        "detector, other = Detector(detect, settings=Spotter), 1",
        "[detector] = [Detector(detect, settings=Spotter)]",
        "(detector := Detector(detect, settings=Spotter))",
        "from .made import detector",
        "from .made import *",
        "try:\n    detector = Detector(detect, settings=Spotter)\nfinally:\n    pass",
    ],
)
def test_whatever_binds_the_detector_counts(folder: Path, last: str) -> None:
    (folder / "made.py").write_text("detector = None\n")
    edit("spotter.py", "detector = Detector(detect, settings=Spotter)", last)(folder)
    assert problems(folder) == []


@pytest.mark.parametrize("last", ["other = 1", "def make():\n    detector = 1", "print(detector)"])
def test_a_module_that_binds_no_detector_is_reported(folder: Path, last: str) -> None:
    edit("spotter.py", "detector = Detector(detect, settings=Spotter)", last)(folder)
    assert problems(folder) == ["spotter.py: end it with detector = Detector(detect, settings=...)"]


@pytest.mark.parametrize(
    "declared",
    [
        "class Spotter(lozenge.Settings):\n    odd_one: int = 3",
        "class Base(Settings):\n    odd_one: int = 3\n\n\nclass Spotter(Base):\n    pass",
        "from lozenge import Settings as S\n\n\nclass Spotter(S):\n    odd_one: int = 3",
    ],
)
def test_settings_are_found_however_their_class_is_written(folder: Path, declared: str) -> None:
    module = (folder / "spotter.py").read_text()
    (folder / "spotter.py").write_text(
        module.replace("class Spotter(Settings)", f"{declared}\n\n\nclass Old(Settings)")
    )
    assert problems(folder) == ["README.md: explain the setting `odd_one`"]


def test_fields_that_are_no_settings_need_no_explanation(folder: Path) -> None:
    (folder / "more.py").write_text(
        "class Further(Settings):\n    _hidden: int = 1\n    KIND: ClassVar[str] = ''\n    model_config: dict = {}\n"
    )
    assert problems(folder) == []


@pytest.mark.parametrize(
    ("dependency", "complaint"),
    [
        ("fraudlib @ file:///srv/fraudlib", 'fraudlib has an address; .* write "fraudlib==<version>", .*UV_FIND_LINKS'),
        ("fraudlib @ git+https://git.example/fraudlib.git@main", "fraudlib has an address"),
        ("./fraudlib", r"project\.dependencies: './fraudlib': "),
        ("pandas==1.5.3", r"'pandas==1.5.3': the platform's code needs pandas 2\."),
        ("pyspark>=5", "'pyspark>=5': the platform's code needs pyspark 4"),
        ("lozenge>=0.1,<0.2", "'lozenge>=0.1,<0.2': the platform's code needs lozenge 0.2"),
    ],
)
def test_a_dependency_that_no_index_can_give_is_reported(folder: Path, dependency: str, complaint: str) -> None:
    edit("pyproject.toml", '"lozenge[job]>=0.2,<0.3"', f'"lozenge[job]>=0.2,<0.3", "{dependency}"')(folder)
    [problem] = problems(folder)
    assert re.search(complaint, problem), problem


@pytest.mark.parametrize(
    "dependency",
    ["numpy==1.26.4", "scikit-learn>=1.3; python_version > '3'", "lightgbm[arrow]", "pandas<2; python_version < '3'"],
)
def test_other_versions_and_packages_are_the_detector_s_own_choice(folder: Path, dependency: str) -> None:
    edit("pyproject.toml", '"lozenge[job]>=0.2,<0.3"', f'"lozenge[job]>=0.2,<0.3", "{dependency}"')(folder)
    assert problems(folder) == []


def test_sources_of_uv_are_reported_because_no_release_uses_them(folder: Path) -> None:
    with (folder / "pyproject.toml").open("a") as file:
        file.write('\n[tool.uv.sources]\nfraudlib = { path = "../fraudlib" }\n')
    [problem] = problems(folder)
    assert "tool.uv.sources is not used for a release: publish fraudlib" in problem


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('version = "0.1.0"', 'version = "first"', "the build back end refuses it: Invalid version `first`"),
        ('version = "0.1.0"', "version = 0.1", 'project.version: a text, such as "1.0.0"'),
        ('requires-python = ">=3.11"', 'requires-python = "three"', "the build back end refuses it: "),
        (
            'requires-python = ">=3.11"',
            'requires-python = "<3.11"',
            "project.requires-python is '<3.11', and releases are for",
        ),
        ('requires-python = ">=3.11"', "requires-python = 3", "the build back end refuses it: "),
        ('"hatchling.build"', '"setuptools.build_meta"', "build-system.build-backend must be hatchling.build"),
        ('dependencies = ["lozenge[job]>=0.2,<0.3"]', 'dependencies = "lozenge"', "the build back end refuses it: "),
        ("ignore-vcs = true", "", None),
        ("[tool.lozenge]", "[tool.lozenges]", "tool.lozenge.kind"),
    ],
)
def test_a_project_is_refused_in_the_words_of_the_back_end(
    folder: Path, old: str, new: str, complaint: str | None
) -> None:
    edit("pyproject.toml", old, new)(folder)
    found = problems(folder)
    assert found == [] if complaint is None else any(complaint in problem for problem in found), found


@pytest.mark.parametrize(
    ("settings", "warning"),
    [
        (
            '[[tool.uv.index]]\nurl = "https://wheels.example/simple"\n',
            "tool.uv.index is not used for a release: set UV_INDEX",
        ),
        ('[tool.uv]\nconstraint-dependencies = ["numpy<2"]\n', "tool.uv.constraint-dependencies is not used"),
        (
            '[tool.poetry.dependencies]\nlightgbm = "^4"\n',
            "tool.poetry.dependencies is not used for a release: write project",
        ),
        (
            '[tool.pytest.ini_options]\naddopts = "-k fires"\n',
            "tool.pytest.ini_options.addopts is not used for a release: `lozenge test` and",
        ),
        ('[tool.pytest]\naddopts = ["-k", "fires"]\n', "tool.pytest.addopts is not used for a release: `lozenge test`"),
    ],
)
def test_settings_of_other_tools_that_no_release_uses_are_warnings(folder: Path, settings: str, warning: str) -> None:
    with (folder / "pyproject.toml").open("a") as file:
        file.write(f"\n{settings}")
    found = findings(folder)
    assert found.problems == []
    assert [warning in each for each in found.warnings] == [True]


@pytest.mark.parametrize("text", ["project = 3\n", "[project]\nname = 3\n", "tool = []\n", "[[project]]\n", ""])
def test_a_project_of_an_unexpected_shape_is_a_problem_and_no_crash(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(text)
    assert all(problem.startswith("pyproject.toml: ") for problem in problems(folder))
    assert problems(folder)


def test_a_file_that_git_ignores_or_the_project_excludes_would_be_missing_and_is_named(folder: Path) -> None:
    (folder / ".gitignore").write_text("*.joblib\n")
    (folder / "model.joblib").write_bytes(b"\0")
    assert problems(folder) == []
    edit("pyproject.toml", "ignore-vcs = true", "ignore-vcs = false")(folder)
    (folder / ".git").mkdir()
    [problem] = problems(folder)
    assert "the wheel would lack model.joblib: [tool.hatch.build.targets.wheel] must be include" in problem
    edit("pyproject.toml", "ignore-vcs = false", "ignore-vcs = true")(folder)
    edit("pyproject.toml", '"/tests"]', '"/tests", "*.joblib"]')(folder)
    assert "would lack model.joblib" in problems(folder)[0]


def test_a_link_to_nothing_is_named(folder: Path) -> None:
    (folder / "model.bin").symlink_to(folder / "nowhere")
    assert any("model.bin: a link to nothing" in problem for problem in problems(folder))


MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize("file", ["spotter.py", "test_spotter.py", "README.md", "limits.csv", "features.py"])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
def test_files_may_begin_with_a_byte_order_mark(folder: Path, file: str, line_end: bytes) -> None:
    edit("pyproject.toml", 'window = "10m"', f'window = "10m"\n{TABLE}')(folder)
    (folder / "limits.csv").write_text("mcc\n5411\n")
    (folder / "features.py").write_text("LIMIT = 1\n")
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(MARK + content.replace(b"\n", line_end))
    assert problems(folder) == []


def test_a_project_file_with_a_byte_order_mark_is_named(folder: Path) -> None:
    file = folder / "pyproject.toml"
    file.write_bytes(MARK + file.read_bytes())
    [problem] = problems(folder)
    assert "it begins with a byte order mark" in problem


@pytest.mark.parametrize("file", ["README.md", "limits.csv", "spotter.py", "test_spotter.py", "pyproject.toml"])
@pytest.mark.parametrize("written", ["é".encode("latin-1"), "ü".encode("utf-16"), b"\0"], ids=["latin", "utf16", "nul"])
def test_a_file_in_another_encoding_is_a_problem_that_names_it(folder: Path, file: str, written: bytes) -> None:
    edit("pyproject.toml", 'window = "10m"', f'window = "10m"\n{TABLE}')(folder)
    (folder / "limits.csv").write_text("mcc\n5411\n")
    with (folder / file).open("ab") as content:
        content.write(b"# " + written + b"\n")
    found = problems(folder)
    if file not in ("README.md", "limits.csv") or written != b"\0":
        assert len([problem for problem in found if file in problem]) == 1, found


@pytest.mark.parametrize("file", ["README.md", "features.py", "spotter.py", "test_spotter.py", "pyproject.toml"])
@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("é = 1\n".encode("latin-1"), "not UTF-8: line 1 has the byte 0xe9"),
        ("a = 1\né = 1\n".encode("latin-1"), "not UTF-8: line 2 has the byte 0xe9"),
        ("a = 1\nb = 1\n\né = 1\n".encode("latin-1"), "not UTF-8: line 4 has the byte 0xe9"),
        ("a = 1\n".encode("utf-16"), "not UTF-8: line 1 has the byte 0xff"),
    ],
    ids=["first", "second", "later", "utf16"],
)
def test_bytes_that_are_no_utf8_are_named_in_the_words_of_tables(
    folder: Path, file: str, content: bytes, complaint: str
) -> None:
    (folder / file).write_bytes(content)
    [problem] = [each for each in problems(folder) if each.startswith(f"{file}: ")]
    assert complaint in problem
    assert problem.endswith("save it as UTF-8")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("a = 1\nb = 1\n".encode("utf-16-le"), "not text: line 1 has the byte 0x00: save it as UTF-8"),
        (
            b"# coding: ascii\na = 1\n\xe9 = 1\n",
            "not ascii, which it declares: line 3 has the byte 0xe9: save it",
        ),
        (b"# coding: klingon\na = 1\n", "unknown encoding: klingon"),
        (b"a = 1\nb = (\n", "line 2: '(' was never closed"),
    ],
)
def test_python_that_is_no_text_says_so(folder: Path, content: bytes, complaint: str) -> None:
    (folder / "features.py").write_bytes(content)
    [problem] = problems(folder)
    assert problem.startswith(f"features.py: {complaint}")


def test_python_in_another_declared_encoding_is_python(folder: Path) -> None:
    (folder / "features.py").write_bytes("# -*- coding: latin-1 -*-\nNAME = 'é'\n".encode("latin-1"))
    assert problems(folder) == []


@pytest.mark.parametrize(
    ("columns", "header"),
    [
        ("mcc string, mcc_limit decimal(18, 4)", "mcc,mcc_limit"),
        ("mcc string,mcc_limit decimal(18,4)", "mcc,mcc_limit"),
        ("MCC STRING", "mcc"),
        ("mcc: string, x: double", "mcc,x"),
        ("`a b` int COMMENT 'x, y', mcc string NOT NULL", "a b,mcc"),
    ],
)
def test_columns_are_declared_as_spark_reads_them(folder: Path, columns: str, header: str) -> None:
    table = f'[tool.lozenge.tables]\nlimits = {{ path = "limits.csv", columns = "{columns}" }}\n'
    edit("pyproject.toml", 'window = "10m"', f'window = "10m"\n{table}')(folder)
    (folder / "limits.csv").write_text(f"{header}\n{header.count(',') * '1,'}1\n")
    assert problems(folder) == []


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ("mcc string, l decimall(18,4)", "limits.csv: columns: decimall(18,4) is no type of Spark"),
        ("mcc", "limits.csv: columns: a type is missing after 'mcc'"),
        ("mcc array<string>", "limits.csv: columns: no CSV file holds the type of mcc"),
    ],
)
def test_columns_that_spark_refuses_are_refused(folder: Path, columns: str, complaint: str) -> None:
    table = f'[tool.lozenge.tables]\nlimits = {{ path = "limits.csv", columns = "{columns}" }}\n'
    edit("pyproject.toml", 'window = "10m"', f'window = "10m"\n{table}')(folder)
    (folder / "limits.csv").write_text("mcc\n")
    assert any(complaint in problem for problem in problems(folder)), problems(folder)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1 half", b"\xef\xbb\xbfPAR1", b"mcc\n5411\n"])
def test_a_parquet_file_that_is_not_whole_is_reported(folder: Path, content: bytes) -> None:
    table = '[tool.lozenge.tables]\nlimits = { path = "limits.parquet" }\n'
    edit("pyproject.toml", 'window = "10m"', f'window = "10m"\n{table}')(folder)
    (folder / "limits.parquet").write_bytes(content)
    [problem] = problems(folder)
    assert problem.startswith("limits.parquet: ")


def test_a_table_whose_codes_no_event_has_is_a_warning(folder: Path) -> None:
    table = '[tool.lozenge.tables]\nlimits = { path = "limits.csv", columns = "mcc string, country string, n int" }\n'
    edit("pyproject.toml", 'window = "10m"', f'window = "10m"\n{table}')(folder)
    (folder / "limits.csv").write_text("mcc,country,n\n0742,DE,1\n742,DE,2\n5411,de,3\n763,FR,4\n")
    found = findings(folder)
    assert found.problems == []
    assert [warning.partition(": ")[2] for warning in found.warnings] == [
        "1 value(s) of country are not of the form [A-Z]{2}, as an event's country is, so no event matches: "
        "the first is 'de' in line 4",
        "2 value(s) of mcc are not of the form [0-9]{4}, as an event's mcc is, so no event matches: "
        "the first is '742' in line 3",
    ]


def test_a_file_that_is_opened_in_the_current_folder_is_a_warning(folder: Path) -> None:
    (folder / "lists").mkdir()
    (folder / "lists" / "known.json").write_text("[]")
    (folder / "features.py").write_text(
        'from pathlib import Path\n\nHERE = Path(__file__).parent / "lists/known.json"\n'
        'THERE = open("lists/known.json")\nELSEWHERE = open("/etc/hosts")\n'
    )
    [warning] = findings(folder).warnings
    assert warning.startswith("features.py: line 4 opens 'lists/known.json' in the current folder")


@pytest.mark.parametrize(
    ("call", "warned"),
    [
        ('F.window("event_time", "12 hours", "5 minutes")', True),
        ('F.window("event_time", length, slideDuration=slide)', True),
        ('F.window("event_time", "5 minutes", "5 minutes")', False),
        ('F.window("event_time", "5 minutes")', False),
        ('F.window("event_time", "5 minutes", None, "1 minute")', False),
        ('F.session_window("event_time", "5 minutes", 3)', False),
    ],
)
def test_windows_that_overlap_are_a_warning(folder: Path, call: str, warned: bool) -> None:
    (folder / "windows.py").write_text(
        f"from pyspark.sql import functions as F\n\ndef made(length, slide):\n    {call}\n"
    )
    found = findings(folder).warnings
    assert [warning.partition(",")[0] for warning in found] == ["windows.py: line 4: its windows overlap"] * warned


def test_what_only_a_reader_misses_keeps_no_detector_from_running(folder: Path) -> None:
    (folder / "README.md").unlink()
    found = findings(folder)
    assert (found.faults, len(found.unfinished)) == ([], 1)


@pytest.mark.parametrize(
    "path", ["../limits.csv", "tests/limits.csv", ".limits.csv", ".lists/limits.csv", "x/../../limits.csv"]
)
def test_a_table_that_no_release_has_is_reported(folder: Path, path: str) -> None:
    table = f'[tool.lozenge.tables]\nlimits = {{ path = "{path}", columns = "mcc string" }}\n'
    edit("pyproject.toml", 'window = "10m"', f'window = "10m"\n{table}')(folder)
    (folder / "x").mkdir()
    (folder / path).parent.mkdir(exist_ok=True)
    (folder / path).write_text("mcc\n5411\n")
    [problem] = problems(folder)
    assert "no release has it, though [tool.lozenge.tables] names it" in problem


@pytest.mark.parametrize("path", ["limits.csv", "./limits.csv", "lists/limits.csv", "parts.csv", "{tmp}/limits.csv"])
def test_a_table_in_the_folder_or_at_an_absolute_path_is_no_problem(folder: Path, path: str) -> None:
    path = path.format(tmp=folder.parent)
    table = f'[tool.lozenge.tables]\nlimits = {{ path = "{path}", columns = "mcc string" }}\n'
    edit("pyproject.toml", 'window = "10m"', f'window = "10m"\n{table}')(folder)
    file = folder / path / "part-0.csv" if path == "parts.csv" else folder / path
    file.parent.mkdir(exist_ok=True)
    file.write_text("mcc\n5411\n")
    assert problems(folder) == []


@pytest.mark.parametrize(
    "written",
    [
        "class TestIt(unittest.TestCase):\n    def test_fires_once(self):\n        self.assertEqual(1, 1)",
        "def test_fires_once():\n    with pytest.raises(ValueError):\n        int('x')",
        "def test_fires_once():\n    np.testing.assert_allclose(1, 1)",
        "def expect(alerts):\n    assert alerts == []\n\n\ndef test_fires_once():\n    expect([])",
    ],
)
def test_a_test_may_compare_in_whatever_way_pytest_runs(folder: Path, written: str) -> None:
    file = folder / "test_spotter.py"
    file.write_text(f"{file.read_text()}\n\n{written}\n")
    assert problems(folder) == []


def test_rows_of_a_table_that_one_event_joins_are_a_warning(folder: Path) -> None:
    columns = "MCC string, country string, n int"
    table = f'[tool.lozenge.tables]\nlimits = {{ path = "limits.csv", columns = "{columns}" }}\n'
    edit("pyproject.toml", 'window = "10m"', f'window = "10m"\n{table}')(folder)
    (folder / "limits.csv").write_text("mcc,country,n\n0742,DE,1\n0742,FR,2\n0742,DE,3\n5411,,4\n5411,,5\n")
    repeats = [warning for warning in findings(folder).warnings if "repeat" in warning]
    assert repeats == [
        "limits.csv: 1 row(s) repeat the mcc, country of another, so an event that joins them raises an alert for "
        "each: the first is '0742, DE' in line 4"
    ]


def test_an_id_with_blanks_around_it_is_a_warning_since_no_event_has_it(folder: Path) -> None:
    table = '[tool.lozenge.tables]\ndenied = { path = "denied.csv", columns = "card_id string" }\n'
    edit("pyproject.toml", 'window = "10m"', f'window = "10m"\n{table}')(folder)
    (folder / "denied.csv").write_text("card_id\ncard-1\ncard-2 \n\u00a0card-3\n")
    [warning] = findings(folder).warnings
    assert "2 value(s) of card_id are not texts without blanks around them" in warning
    assert "the first is 'card-2 ' in line 3" in warning


def test_a_list_is_no_file_and_code_that_forgets_its_expiry_is_a_warning(folder: Path) -> None:
    table = '[tool.lozenge.tables]\nblocked = { list = "cards" }\n'
    edit("pyproject.toml", 'window = "10m"', f'window = "10m"\n{table}')(folder)
    found = findings(folder)
    assert found.faults == []
    [warning] = found.warnings
    assert "the table blocked (list cards) keeps entries after their expiry" in warning
    (folder / "lookups.py").write_text("from lozenge import listed\n\nRISKY = listed(None, None, 'card_id')\n")
    assert findings(folder).warnings == []


def test_a_package_of_the_name_of_the_main_module_is_reported(folder: Path) -> None:
    (folder / "spotter").mkdir()
    assert problems(folder) == []
    (folder / "spotter" / "__init__.py").touch()
    assert problems(folder) == ["spotter/: rename it, or Python imports it in place of spotter.py"]


def test_a_virtual_environment_in_the_folder_is_reported_and_its_files_are_not(folder: Path) -> None:
    for name in ("env", ".venv"):
        (folder / name / "lib").mkdir(parents=True)
        (folder / name / "pyvenv.cfg").touch()
        (folder / name / "lib" / "old.py").write_text("print 'of Python 2'\n")
    assert problems(folder) == ["env/: a release would hold this virtual environment: remove it, or call it .venv"]


READS_ALERTS = 'alerts_of = "{}"\nkey = "{}"'


def reading(folder: Path, alerts_of: str, key: str = "card") -> Path:
    """The folder, of a detector that reads the alerts of another one."""
    edit("pyproject.toml", 'stream = "auth"', READS_ALERTS.format(alerts_of, key))(folder)
    return folder


def neighbour(folder: Path, name: str) -> Path:
    write(folder.parent, name, "rule", "somebody", AUTH)
    return folder.parent / name


def test_detectors_that_read_each_others_alerts_are_a_problem_of_each(folder: Path) -> None:
    reading(folder, "other")
    other, third = (neighbour(folder, name) for name in ("other", "third"))
    assert findings(folder).faults == []
    assert findings(folder).warnings == []
    reading(other, "third")
    assert findings(folder).faults == [], "a chain is none"
    reading(third, "spotter")
    [fault] = findings(folder).faults
    assert "tool.lozenge.alerts_of: a cycle" in fault
    assert fault.endswith("spotter reads the alerts of other, other those of third, third those of spotter")
    assert all("a cycle" in findings(each).faults[0] for each in (other, third))


def test_the_key_is_that_of_the_alerts(folder: Path) -> None:
    neighbour(folder, "other")
    [fault] = findings(reading(folder, "other", "account")).faults
    assert fault == "pyproject.toml: tool.lozenge.key: the alerts of other are by card, not by account"
    (folder.parent / "other" / "pyproject.toml").write_text("[project")
    assert findings(folder).faults == [], "its own check says what is wrong with it"


def test_a_detector_that_is_not_in_the_project_may_be_deployed_all_the_same(folder: Path) -> None:
    found = findings(reading(folder, "elsewhere"))
    assert found.problems == []
    [warning] = found.warnings
    assert "has no detector elsewhere; `lozenge deploy` requires that it is deployed" in warning


_PARTS = (
    *("a", "data", "tests", ".hidden", "__pycache__", "pyspark", "größe", "a b"),
    *("x.py", "__init__.py", "test_x.py", "m.json"),
)
_CONTENTS = (
    *(b"", b"import json\n", b"\xff", b"\x00", b"[1]"),
    *(b"from . import x\n", b"from .a import y\n", b"import tests.x\n"),
)
_LINKS = (".", "..", "spotter.py", "nowhere", "a")
_ENTRY = st.tuples(
    st.lists(st.sampled_from(_PARTS), min_size=1, max_size=3),
    st.sampled_from(_CONTENTS) | st.sampled_from(_LINKS),
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("layouts")
    write(folder, "spotter", "aggregate", "somebody", AUTH)
    return folder / "spotter"


@given(st.lists(_ENTRY, max_size=5))
def test_a_folder_of_any_layout_is_checked_and_a_sound_one_has_all_of_its_modules_in_the_wheel(
    template: Path, entries: list[tuple[list[str], bytes | str]]
) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "spotter"
        shutil.copytree(template, folder)
        for parts, what in entries:
            with suppress(OSError):  # two entries may want one place
                (folder / Path(*parts)).parent.mkdir(parents=True, exist_ok=True)
                if isinstance(what, bytes):
                    (folder / Path(*parts)).write_bytes(what)
                else:
                    (folder / Path(*parts)).symlink_to(what)
        found = findings(folder)
        assert all(line.strip() for line in (*found.problems, *found.warnings))
        if not found.problems:
            modules = [file.relative_to(folder) for file in folder.rglob("*.py") if file.is_file()]
            outside = {"tests", "__pycache__", ".hidden"}
            inside = {m.as_posix() for m in modules if not (m.name.startswith("test_") or outside & {*m.parts})}
            assert inside <= contents_of(folder).files.keys()

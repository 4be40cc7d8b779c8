"""The check of a folder knows what its release will hold, and names what a job would look for in vain."""

import os
import subprocess
from pathlib import Path

import pytest

from lozenge_deploy.cli.author.scaffold import write
from lozenge_deploy.releases import build
from lozenge_deploy.releases.lint.folder import findings, problems
from lozenge_deploy.releases.lint.wheel import contents_of, wheel_options
from tests.streams import AUTH


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "spotter", "rule", "somebody", AUTH)
    made = tmp_path / "spotter"
    for file in ("tests/helper.py", "conftest.py", "sub/deep.py", "tests/sub/more.py"):
        (made / file).parent.mkdir(exist_ok=True)
        (made / file).write_text("x = 1\n")
    return made


def begin(file: Path, line: str) -> None:
    file.write_text(f"{line}\n{file.read_text() if file.exists() else ''}")


EXCLUDED = "tests/, conftest.py, test_spotter.py, README.md and names that begin with a dot stay out of its wheel"


@pytest.mark.parametrize("file", ["spotter.py", "rules.py"])
@pytest.mark.parametrize(
    ("written", "lacking"),
    [
        ("from .tests.helper import x", "tests/helper.py"),
        ("from .tests import helper", "tests"),
        ("from .tests.sub.more import x", "tests/sub/more.py"),
        ("from . import conftest", "conftest.py"),
        ("from .conftest import x", "conftest.py"),
        ("from .test_spotter import detector", "test_spotter.py"),
        ("from spotter.tests.helper import x", "tests/helper.py"),
        ("from spotter import conftest", "conftest.py"),
        ("import spotter.test_spotter", "test_spotter.py"),
        ("import json, spotter.tests.helper", "tests/helper.py"),
        ("from tests.helper import x", "tests/helper.py"),
        ("import conftest", "conftest.py"),
    ],
)
def test_an_import_of_a_module_that_only_the_tests_have_is_named(
    folder: Path, file: str, written: str, lacking: str
) -> None:
    begin(folder / file, written)
    assert findings(folder).faults == [
        f"{file}: line 1: no release has {lacking}: {EXCLUDED}; what a job needs goes elsewhere in the folder"
    ]


def test_a_module_below_others_imports_by_its_own_place(folder: Path) -> None:
    (folder / "sub" / "deep.py").write_text("from ..tests.helper import x\n")
    [fault] = findings(folder).faults
    assert fault.startswith("sub/deep.py: line 1: no release has tests/helper.py: ")
    (folder / "sub" / "tests").mkdir()
    (folder / "sub" / "tests" / "helper.py").write_text("x = 1\n")
    (folder / "sub" / "deep.py").write_text("from .tests.helper import x\n")
    assert problems(folder) == [], "the wheel has tests/ of a folder below"


@pytest.mark.parametrize("file", ["test_spotter.py", "conftest.py", "tests/test_more.py", "test_rules.py"])
@pytest.mark.parametrize("written", ["from spotter.tests.helper import x", "from spotter.conftest import x"])
def test_tests_import_what_only_tests_have(folder: Path, file: str, written: str) -> None:
    begin(folder / file, written)
    assert problems(folder) == []


@pytest.mark.parametrize(
    "written",
    [
        "from .sub.deep import x",
        "from . import sub",
        "try:\n    from .tests.helper import x\nexcept ImportError:\n    x = 1",
    ],
)
def test_an_import_of_what_the_release_has_or_may_lack_is_no_problem(folder: Path, written: str) -> None:
    begin(folder / "rules.py", written)
    assert problems(folder) == []


def test_a_file_that_the_options_of_the_wheel_exclude_is_named_once(folder: Path) -> None:
    project = folder / "pyproject.toml"
    project.write_text(project.read_text().replace('"/tests"]', '"/tests", "/sub"]'))
    begin(folder / "rules.py", "from .sub.deep import x")
    [problem] = problems(folder)
    assert problem.startswith("pyproject.toml: the wheel would lack sub/deep.py: ")


@pytest.mark.parametrize(
    ("written", "lacking"),
    [
        ('(Path(__file__).parent / ".models" / "m.json").read_text()', ".models/m.json"),
        ('(Path(__file__).parent/".models/m.json").read_text()', ".models/m.json"),
        ('Path(__file__).parent.joinpath(".models", "m.json")', ".models/m.json"),
        ('os.path.join(os.path.dirname(__file__), ".models", "m.json")', ".models/m.json"),
        ('Path(__file__).with_name(".m.json")', ".m.json"),
        ('Path(__file__).parent / "tests/m.json"', "tests/m.json"),
        ('(Path(__file__).parent / ".models").glob("*.json")', ".models"),
        ('[Path(__file__).parent / ".models" / f"{n}.json" for n in "m"]', ".models"),
        ('".models/m.json"', ".models/m.json"),
    ],
)
def test_data_that_no_release_has_is_named_where_its_path_is_written(folder: Path, written: str, lacking: str) -> None:
    for file in (".models/m.json", "tests/m.json", ".m.json", "models/m.json"):
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text("{}")
    begin(folder / "rules.py", f"import os\nfrom pathlib import Path\nDATA = {written}")
    [fault] = findings(folder).faults
    assert fault.startswith(f"rules.py: line 3: no release has {lacking}: {EXCLUDED}")
    begin(folder / "rules.py", "TRIED = 1\ntry:\n    import a\nexcept ImportError:\n    a = 1")
    (folder / "rules.py").write_text((folder / "rules.py").read_text().replace(".m", "m").replace("tests/", "models/"))
    (folder / "m.json").write_text("{}")
    assert problems(folder) == []


@pytest.mark.parametrize(
    "written",
    [
        'REASON = "tests"',
        'RATE = F.col("amount") / 3',
        'HERE = Path(__file__).parent / ".not_there"',
        'HERE = Path(__file__).parent / ""',
        'HERE = Path(__file__).parent / "." / ".."',
        'THERE = "/etc/hosts\\0"',
        f'LONG = "{"x" * 5000}"',
        '"""tests/helper.py"""',
        'try:\n    x = Path(__file__).parent / "tests" / "helper.py"\nexcept OSError:\n    x = 1',
        'COMMAS = ",".join(["tests"])',
    ],
)
def test_other_texts_name_no_data(folder: Path, written: str) -> None:
    (folder / "rules.py").write_text(f"{written}\n")
    assert problems(folder) == []


def test_a_wheel_that_would_be_too_large_is_found_before_it_is_built(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "LARGEST_WHEEL", 1_000_000)
    (folder / "zeros.bin").write_bytes(bytes(5_000_000))
    assert problems(folder) == [], "compressed it is small"
    (folder / "model.bin").write_bytes(os.urandom(1_100_000))
    (folder / "tests" / "large.bin").write_bytes(os.urandom(1_100_000))
    (folder / "zeros.bin").unlink()
    assert findings(folder).faults == [
        "model.bin: has 1.1 MB, and the wheel would have more than the 1 MB that are kept in a release: "
        f"{build.SMALLER}"
    ]
    (folder / "model.bin").write_bytes(os.urandom(900_000))
    assert problems(folder) == []


@pytest.mark.parametrize("name", ["pyspark", "numpy", "pandas", "lightgbm"])
@pytest.mark.parametrize("file", ["spotter.py", "test_spotter.py"])
def test_a_folder_of_the_name_of_a_package_hides_nothing(folder: Path, name: str, file: str) -> None:
    project = folder / "pyproject.toml"
    project.write_text(project.read_text().replace('"lozenge[job]>=0.2,<0.3"', '"lozenge[job]>=0.2,<0.3", "lightgbm"'))
    (folder / name).mkdir()
    (folder / name / "sql.py").write_text("x = 1\n")
    begin(folder / file, f"import {name}\nfrom {name}.sql import DataFrame")
    assert findings(folder).faults == []


def test_a_folder_that_may_be_meant_or_not_is_named_both_ways(folder: Path) -> None:
    (folder / "sklearn").mkdir()
    (folder / "sklearn" / "tree.py").write_text("x = 1\n")
    begin(folder / "rules.py", "from sklearn.tree import x")
    advice = "rules.py: line 1: the folder is the package spotter: write `from .sklearn.tree import ...`"
    assert problems(folder) == [advice]
    project = folder / "pyproject.toml"
    project.write_text(
        project.read_text().replace('"lozenge[job]>=0.2,<0.3"', '"lozenge[job]>=0.2,<0.3", "scikit-learn"')
    )
    assert problems(folder) == [f"{advice}, or rename sklearn if one of `dependencies` is meant"]


def test_the_contents_are_those_of_the_wheel_that_is_built(folder: Path, tmp_path: Path) -> None:
    (folder / ".models").mkdir()
    (folder / ".models" / "m.json").write_text("{}")
    build._build(folder, tmp_path / "built", "building")
    wheel = build.Wheel.within(tmp_path / "built").write(tmp_path)
    listed = subprocess.run(["python3", "-m", "zipfile", "-l", str(wheel)], capture_output=True, text=True).stdout
    held = {line.split()[0].removeprefix("spotter/") for line in listed.splitlines() if line.startswith("spotter/")}
    assert held == set(contents_of(folder).files) == {"spotter.py", "pyproject.toml", "sub/deep.py"}
    assert wheel_options("spotter").startswith('include = ["*"]')

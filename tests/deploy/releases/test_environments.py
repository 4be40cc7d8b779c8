"""Environments with a stand-in for uv; the real one is in tests/integration."""

import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from lozenge.errors import ToolchainError, UsageError
from lozenge_deploy.releases import uv as uv_tool
from lozenge_deploy.releases.build import LIBRARY, Parts, Wheel, parts_of
from lozenge_deploy.releases.environments import base_environment, environment, environment_of, in_environment
from tests.streams import AUTH


class FakeUv:
    """Builds empty wheels, and environments that hold the files by which a real one is recognised."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __call__(self, doing: str, *arguments: str) -> None:
        self.calls.append(arguments[0])
        names = {"shared": LIBRARY}
        match arguments[0]:
            case "venv":
                (Path(arguments[-1]) / "bin").mkdir(parents=True)
                (Path(arguments[-1]) / "bin" / "python").touch()
            case "build":
                target = Path(arguments[arguments.index("-o") + 1])
                target.mkdir(parents=True, exist_ok=True)
                name = names.get(Path(arguments[-1]).name, "spotter")
                with zipfile.ZipFile(target / f"{name}-1-py3-none-any.whl", "w") as wheel:
                    wheel.writestr(f"{name}-1.dist-info/METADATA", f"Name: {name}\nVersion: 1\n")
            case "pip" if arguments[1] == "compile":
                Path(arguments[arguments.index("-o") + 1]).write_text("pandas==2.2.0 --hash=sha256:ab\n")
            case "pip":
                home = Path(arguments[arguments.index("--python") + 1]).parents[1]
                for name in (LIBRARY, "spotter"):
                    info = home / "lib" / "python3" / "site-packages" / f"{name.replace('-', '_')}-1.dist-info"
                    info.mkdir(parents=True, exist_ok=True)
                    (info.parent / f"{name}.py").touch()
                    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
                    (info / "RECORD").write_text(f"{name}.py,,\n")


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeUv:
    fake = FakeUv()
    monkeypatch.setattr(uv_tool, "uv", fake)
    monkeypatch.setenv("LOZENGE_CACHE", str(tmp_path / "cache"))
    return fake


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "spotter"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("[project]\nname = 'spotter'\n")
    (folder / "spotter.py").write_text("detector = 1\n")
    (folder / "test_spotter.py").write_text("")
    return folder


def test_an_environment_is_made_once(uv: FakeUv, folder: Path) -> None:
    python = environment_of(folder)
    assert python.exists()
    made = len(uv.calls)
    assert environment_of(folder) == python
    assert len(uv.calls) == made


def test_a_broken_environment_is_made_again(uv: FakeUv, folder: Path) -> None:
    python = environment_of(folder)
    python.unlink()
    assert environment_of(folder).exists()
    next(python.parents[1].rglob("spotter.py")).unlink()
    assert environment_of(folder) == python
    assert next(python.parents[1].rglob("spotter.py")).exists()


def test_an_environment_that_cannot_be_made_leaves_nothing(
    uv: FakeUv, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(doing: str, *arguments: str) -> None:
        uv(doing, *arguments)
        if arguments[:2] == ("pip", "install"):
            raise ToolchainError(f"{doing}: no solution found")

    monkeypatch.setattr(uv_tool, "uv", refuse)
    with pytest.raises(ToolchainError, match="spotter: no solution found"):
        environment_of(folder)
    assert not [path for path in (tmp_path / "cache" / "environments").iterdir() if path.is_dir()]


def test_the_parts_are_built_once_and_outlive_the_folder(uv: FakeUv, folder: Path) -> None:
    parts = parts_of(folder)
    made = len(uv.calls)
    assert parts_of(folder) == parts
    assert len(uv.calls) == made
    shutil.rmtree(folder)
    assert environment(parts).exists()


def test_another_part_is_another_environment() -> None:
    wheel = Wheel(file="spotter-1-py3-none-any.whl", content=b"code")
    one = Parts("spotter", wheel, "pandas==2.2.0", wheel, AUTH)
    others = [
        replace(one, wheel=Wheel(file=wheel.file, content=b"other code")),
        replace(one, lock="pandas==2.2.1"),
        replace(one, library=Wheel(file=wheel.file, content=b"other library")),
        replace(one, python="3.99"),
    ]
    assert len({parts.digest for parts in [one, replace(one), *others]}) == 5


def test_parts_for_another_python_are_refused(uv: FakeUv, folder: Path) -> None:
    with pytest.raises(ToolchainError, match=r"it is for Python 3\.99, this is 3"):
        environment(replace(parts_of(folder), python="3.99"))


def test_a_folder_without_a_detector_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no pyproject\.toml"):
        environment_of(tmp_path)


def test_the_code_of_a_detector_means_the_same_on_every_machine() -> None:
    given = {"TZ": "America/New_York", "PYTHONHASHSEED": "random", "PYTHONOPTIMIZE": "2", "KEPT": "yes"}
    code = "import time; assert False, (hash('card-1'), time.strftime('%z'))"
    python = in_environment(os.environ | given)
    said = [
        subprocess.run([sys.executable, "-c", code], env=python, capture_output=True, text=True).stderr.splitlines()[-1]
        for _ in range(2)
    ]
    assert said[0] == said[1]
    assert said[0].startswith("AssertionError: (")
    assert "'+0000'" in said[0]
    assert python["KEPT"] == "yes"


def test_an_environment_without_a_detector_has_the_base_of_one_that_declares_no_package(
    uv: FakeUv, folder: Path
) -> None:
    without, of_detector = base_environment(), environment_of(folder)
    assert without != of_detector
    bases = {(python.parents[1] / "base").read_text("utf-8") for python in (without, of_detector)}
    assert len(bases) == 1
    made = len(uv.calls)
    assert base_environment() == without
    assert len(uv.calls) == made

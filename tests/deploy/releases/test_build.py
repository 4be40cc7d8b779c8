"""What a wheel is built from, and when it is built again; the back end is the real one."""

import shutil
import zipfile
from pathlib import Path

import pytest

from lozenge.errors import ToolchainError, UsageError
from lozenge_deploy.releases import build
from lozenge_deploy.releases.build import (
    CHECKOUT,
    Wheel,
    constraints_without,
    digest_of,
    normalised,
    requirements_of,
)
from tests.deploy.wheel_project import project


@pytest.fixture(params=["spotter", "test_spotter"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A detector with a table; the names of both may begin as those of tests do."""
    folder = tmp_path / str(request.param)
    folder.mkdir()
    (folder / "pyproject.toml").write_text(project(folder.name))
    (folder / f"{folder.name}.py").write_text("detector = 1\n")
    (folder / "test_limits.csv").write_text("a,b\n")
    (folder / f"test_{folder.name}.py").write_text("")
    return folder


def wheel_of(folder: Path, target: Path) -> Wheel:
    """The wheel of `folder` as `parts_of` has it: built again only if the digest of the folder has changed."""
    home = target / digest_of(folder)
    if not home.exists():
        build._build(folder, home, f"building {folder.name}")
    return Wheel.within(home)


def test_a_change_of_what_the_wheel_holds_is_another_wheel(folder: Path, tmp_path: Path) -> None:
    wheels = [wheel_of(folder, tmp_path / "built")]
    for file, text in ((f"{folder.name}.py", "detector = 2\n"), ("test_limits.csv", "c,d\n")):
        (folder / file).write_text(text)
        wheels.append(wheel_of(folder, tmp_path / "built"))
    assert len({wheel.sha256 for wheel in wheels}) == len(wheels)


def test_a_change_of_the_tests_is_another_digest_and_the_same_wheel(folder: Path, tmp_path: Path) -> None:
    digest, wheel = digest_of(folder), wheel_of(folder, tmp_path / "built")
    (folder / f"test_{folder.name}.py").write_text("def test_fires() -> None: ...\n")
    assert digest_of(folder) != digest
    assert wheel_of(folder, tmp_path / "built") == wheel


def test_the_wheel_holds_every_file_of_the_folder_whatever_its_kind_and_name(folder: Path, tmp_path: Path) -> None:
    name = folder.name
    kept = ("features.py", "test_rules.py", "models/de/m.joblib", "lists/a b ü.json", "sub/__init__.py", "dist.txt")
    left = ("README.md", "conftest.py", "tests/data.json", ".idea/x", "__pycache__/x.cpython-311.pyc", "sub/.cache/x")
    for file in (*kept, *left):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(b"\0\xff" + file.encode())
    (folder / ".gitignore").write_text("*.joblib\nlists/\n")
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "shared.py").write_text("LIMIT = 1\n")
    (folder / "linked").symlink_to(tmp_path / "common")
    wheel = wheel_of(folder, tmp_path / "built")
    with zipfile.ZipFile(tmp_path / "built" / digest_of(folder) / wheel.file) as held:
        names = {each for each in held.namelist() if ".dist-info/" not in each}
        assert held.read(f"{name}/models/de/m.joblib") == b"\0\xffmodels/de/m.joblib"
    own = ("pyproject.toml", f"{name}.py", "test_limits.csv", "linked/shared.py")
    assert names == {f"{name}/{file}" for file in (*kept, *own)}
    for changed in (folder / "lists/a b ü.json", tmp_path / "common" / "shared.py"):
        before = digest_of(folder)
        changed.write_text("LIMIT = 2\n")
        assert digest_of(folder) != before
        assert wheel_of(folder, tmp_path / "built") != wheel


def test_the_digest_follows_the_name_of_a_file_and_no_cache(folder: Path) -> None:
    digest = digest_of(folder)
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "spotter.pyc").touch()
    (folder / ".mypy_cache").touch()
    assert digest_of(folder) == digest
    shutil.move(folder / "test_limits.csv", folder / "limits.csv")
    assert digest_of(folder) != digest


def test_the_library_s_digest_covers_every_file_of_its_wheel_and_no_other_stage(tmp_path: Path) -> None:
    build._build(build._SOURCES, tmp_path, "building the library")
    wheel = Wheel.within(tmp_path)
    assert wheel.distribution == build.LIBRARY
    with zipfile.ZipFile(tmp_path / wheel.file) as held:
        names = [name for name in held.namelist() if ".dist-info/" not in name]
    assert {name.partition("/")[0] for name in names} == {"lozenge"}
    counted = {line.partition(":")[0] for line in build._contents(build._SOURCES)}
    assert set(names) <= counted
    assert "pyproject.toml" in counted


@pytest.mark.parametrize("other", ["upstream", "downstream", "deploy"])
def test_a_change_of_another_stage_keeps_the_library_s_digest(other: str) -> None:
    assert not any(CHECKOUT / other in file.parents for file in build._SOURCES.rglob("*"))


def test_a_wheel_that_is_too_large_for_a_release_is_refused_when_it_is_built(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOZENGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "LARGEST_WHEEL", 100)
    with pytest.raises(UsageError, match=r"the wheel of \w+: it has 0\.0 MB, at most 0\.0001 are kept") as refused:
        build.parts_of(folder)
    assert "a package of its own" in refused.value.hint


def test_a_detector_chooses_the_version_of_what_it_declares_and_the_library_does_not() -> None:
    pinned = (
        "a==1 \\\n    --hash=sha256:1\n    # via b\nNum-Py==2 \\\n    --hash=sha256:2\n    # via\n    #   a\nz==3\n"
    )
    assert constraints_without(pinned, {"num-py"}) == "a==1 \\\n    --hash=sha256:1\n    # via b\nz==3\n"
    assert constraints_without(pinned, ()) == pinned


def test_the_requirements_of_a_wheel_are_those_that_it_declares(tmp_path: Path) -> None:
    folder = tmp_path / "spotter"
    folder.mkdir()
    (folder / "spotter.py").touch()
    (folder / "pyproject.toml").write_text(
        project("spotter", "lozenge[job]>=0.2", "Num_Py==1.26.4; python_version>'3'", "pytz; sys_platform=='win32'")
        + "\n[project.optional-dependencies]\ndev = ['pandas<2']\n"
    )
    wheel = wheel_of(folder, tmp_path)
    assert requirements_of(wheel) == {"lozenge", "num-py"}
    assert requirements_of(wheel, "dev") == {"lozenge", "num-py", "pandas"}


def test_a_build_that_fails_says_the_words_of_the_build_back_end(folder: Path, tmp_path: Path) -> None:
    file = folder / "pyproject.toml"
    file.write_text(file.read_text().replace("dependencies = []", 'dependencies = ["fraudlib @ file:///srv/fraudlib"]'))
    with pytest.raises(ToolchainError) as refused:
        wheel_of(folder, tmp_path / "built")
    said = "ValueError: Dependency #1 of field `project.dependencies` cannot be a direct reference"
    assert refused.value.message.startswith(f"building {folder.name}: {said}")
    assert "\n" not in refused.value.message
    assert "pyproject.toml" in refused.value.hint


def test_a_name_of_a_distribution_has_one_form() -> None:
    assert {normalised(name) for name in ("Large_Amount", "large-amount", "large.amount")} == {"large-amount"}

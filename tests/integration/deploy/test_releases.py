"""Releases in a real broker's topic, and environments that the real uv makes of them."""

import importlib.metadata
import random
import re
import shutil
import subprocess
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lozenge.contracts.detector_kind import DetectorKind
from lozenge.detector.description import Description
from lozenge.detector.manifest import Manifest
from lozenge.errors import ConfigError, DetectorError, ToolchainError, UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.releases.build import Parts, Wheel
from lozenge_deploy.releases.environments import in_environment
from lozenge_deploy.releases.release import Built, build
from lozenge_deploy.releases.release_store import Releases, environment_for
from tests.deploy.sparkless_environments import install
from tests.deploy.wheel_project import project
from tests.streams import AUTH

MODULE = '''"""Finds nothing; it misses everything."""

import toposort
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lozenge import Detector, Settings, Tables, alert


class Nothing(Settings):
    limit: int = 3


def detect(events: DataFrame, settings: Nothing, tables: Tables) -> DataFrame:
    return events.where(F.lit(False)).select(*alert(reason=F.lit("")))


detector = Detector(detect, settings=Nothing)
'''


@pytest.fixture
def releases(kafka: KafkaSettings) -> Releases:
    return Releases(kafka)


@pytest.fixture
def name() -> str:
    return f"rel_{uuid.uuid4().hex[:8]}"


def folder(parent: Path, name: str, version: str = "1.10") -> Path:
    """A detector that imports one version of toposort, which the platform does not need."""
    made = parent / name
    made.mkdir()
    (made / f"{name}.py").write_text(MODULE)
    tables = {
        'project.entry-points."lozenge.detectors"': {name: f"{name}.{name}:detector"},
        "tool.lozenge": {"kind": "rule", "owner": "tests", "title": "A test"},
    }
    dependencies = ("lozenge[job]>=0.2,<0.3", f"toposort=={version}")
    (made / "pyproject.toml").write_text(project(name, *dependencies, more=tables))
    return made


def built(name: str, content: bytes = b"wheel") -> Built:
    """Contents that nobody can run, for what only concerns their keeping."""
    wheel = Wheel(file=f"{name}-1.0.0-py3-none-any.whl", content=content)
    library = Wheel(file="lozenge-0.2.0-py3-none-any.whl", content=b"library")
    description = Description(
        detector=name,
        version="1.0.0",
        declaration=Manifest(kind=DetectorKind.RULE, owner="tests", title="A test"),
        stream=AUTH,
        settings={},
        settings_digest="",
        settings_schema={},
        state_shape=None,
        schemas=[],
    )
    return Built(Parts(name, wheel, "", library, AUTH), description)


def says(python: Path, module: str) -> list[str]:
    """Which toposort a detector's process imports, and from where."""
    script = (
        f"import {module}.{module} as d, importlib.metadata as m; print(m.version('toposort'), d.toposort.__file__)"
    )
    run = subprocess.run([python, "-P", "-c", script], capture_output=True, text=True, check=True, env={})
    return run.stdout.split()


def test_numbers_rise_and_the_same_content_is_the_same_release(releases: Releases, name: str) -> None:
    assert releases.of(name) == []
    first = releases.add(built(name, b"one"), by="me")
    second = releases.add(built(name, b"two"), by="you")
    again = releases.add(built(name, b"one"), by="you")
    assert (first.name, second.name) == ("r1", "r2")
    assert again == first
    assert releases.of(name) == [first, second]
    assert releases.get(name, "r1") == first
    assert (second.made_by, second.wheel.content) == ("you", b"two")
    assert releases.library(first.library).content == b"library"


def test_a_missing_release_is_refused_with_those_that_exist(releases: Releases, name: str) -> None:
    with pytest.raises(UsageError, match=f"looking for release r1 of {name}: releases: none"):
        releases.get(name, "r1")
    releases.add(built(name), by="me")
    with pytest.raises(UsageError, match=f"looking for release r7 of {name}: releases: r1"):
        releases.get(name, "r7")
    with pytest.raises(UsageError, match="looking for the library ffff"):
        releases.library("ffff")


def test_releases_added_concurrently_have_different_numbers(releases: Releases, name: str) -> None:
    contents = [built(name, f"content {number}".encode()) for number in range(3)]
    other = built(f"{name}_other")
    with ThreadPoolExecutor(5) as adders:
        made = list(adders.map(lambda one: releases.add(one, by="me"), [*contents, contents[0], other]))
    assert sorted(release.name for release in made[:3]) == ["r1", "r2", "r3"]
    assert made[3] == made[0]
    assert made[4].name == "r1"
    assert releases.of(name) == sorted(made[:3], key=lambda release: release.number)


def test_a_release_with_a_large_model_is_kept_whole(releases: Releases, name: str) -> None:
    first = releases.add(built(name, random.Random(1).randbytes(3_000_000)), by="me")
    assert releases.add(built(name, first.wheel.content), by="me") == first
    second = releases.add(built(name, b"small again"), by="me")
    assert releases.of(name) == [first, second]


def test_a_release_runs_where_its_folder_is_not(
    releases: Releases, name: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = folder(tmp_path, name)
    made = build(source)
    assert made.description.settings == {"limit": 3}
    release = releases.add(made, by="me")
    assert releases.add(build(source), by="me") == release
    (source / f"{name}.py").write_text(
        MODULE.replace("import toposort\n", "").replace("limit: int = 3", "limit: int = 4")
    )
    install(source)
    changed = releases.add(build(source), by="me")
    assert (changed.name, changed.settings) == ("r2", {"limit": 4})

    shutil.rmtree(source)
    monkeypatch.setenv("LOZENGE_CACHE", str(tmp_path / "cache"))  # as on a host that has run nothing yet
    python = environment_for(releases.get(name, "r1"), releases)
    assert environment_for(releases.get(name, "r1"), releases) == python
    command = [str(python), "-P", "-m", "lozenge.job.tools.describe"]
    own = in_environment({}, python)
    output = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=own).stdout
    assert Description.model_validate_json(output) == made.description
    tried = subprocess.run([*command, "--settings", '{"limit": "x", "no": 1}'], capture_output=True, text=True, env=own)
    assert tried.returncode == 2
    assert "limit: " in tried.stderr
    assert "no: " in tried.stderr


def test_two_detectors_have_each_its_own_version_of_a_dependency(
    releases: Releases, name: str, cache: Path, tmp_path: Path
) -> None:
    wanted = {f"{name}_old": "1.9", f"{name}_new": "1.10"}
    made = [releases.add(build(folder(tmp_path, n, v)), by="me") for n, v in wanted.items()]
    with ThreadPoolExecutor(2) as both:
        pythons = list(both.map(lambda release: environment_for(release, releases), made))
    for python, (detector, version) in zip(pythons, wanted.items(), strict=True):
        found, file = says(python, detector)
        assert found == version
        assert file.startswith(str(python.parents[1]))
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("toposort")  # nothing of it has come into the environment of the tools


def test_a_package_with_another_hash_than_in_the_lock_is_refused(
    releases: Releases, name: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = releases.add(build(folder(tmp_path, name)), by="me")
    [known] = re.findall(r"toposort==1\.10((?: \\\n    --hash=sha256:\w{64})+)", release.lock)
    forged = release.lock.replace(known, f" --hash=sha256:{'0' * 64}")
    monkeypatch.setenv("UV_OFFLINE", "1")  # asked online, uv would fetch and build much again before it says so
    with pytest.raises(ToolchainError, match="Hash mismatch for `toposort"):
        environment_for(release.model_copy(update={"lock": forged}), releases)


def test_a_detector_that_cannot_describe_itself_says_why(name: str, cache: Path, tmp_path: Path) -> None:
    source = folder(tmp_path, name)
    module = source / f"{name}.py"
    module.write_text(MODULE.replace("import toposort", "import not_there"))
    install(source)
    with pytest.raises(DetectorError, match=f"describing {name}: importing detector {name}: ModuleNotFoundError"):
        build(source)
    module.write_text(MODULE.replace("import toposort\n", "").replace("limit: int = 3", "limit: int"))
    install(source)
    with pytest.raises(ConfigError, match="limit: it is missing"):
        build(source)

"""A detector's own environment, made by the real uv from its cache, and what a detector says that cannot start."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from lozenge.errors import ToolchainError
from lozenge.streams.project import STREAMS_VARIABLE
from lozenge_deploy.releases.build import CHECKOUT, parts_of
from lozenge_deploy.releases.environments import STREAMS, environment_of

pytestmark = pytest.mark.integration


@pytest.fixture
def folder(cache: Path, tmp_path: Path) -> Path:
    """A copy of large_amount, under the cache of this run."""
    return Path(shutil.copytree(CHECKOUT / "detectors" / "large_amount", tmp_path / "large_amount"))


def job(python: Path, *which: str) -> subprocess.CompletedProcess[str]:
    """Starts the detector in its environment with no broker to find, away from the checkout."""
    command = [str(python), "-m", "lozenge.job", *which]
    environment = {"LOZENGE_KAFKA_BOOTSTRAP": "127.0.0.1:1", STREAMS_VARIABLE: str(python.parents[1] / STREAMS)}
    return subprocess.run(command, capture_output=True, text=True, cwd=python.parents[1], env=environment)


def test_an_environment_holds_nothing_of_the_checkout_and_a_failing_import_is_named(
    folder: Path,
) -> None:
    python = environment_of(folder)
    script = "import large_amount.large_amount as m, lozenge, sys; print(m.__file__, lozenge.__file__, sys.prefix)"
    run = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True, cwd="/", env={})
    assert all(path.startswith(str(python.parents[1])) for path in run.stdout.split())
    assert job(python).returncode == 3  # it loads, and misses the broker

    module = folder / "large_amount.py"
    module.write_text("import not_there\n" + module.read_text())
    run = job(python, f"{folder}{os.sep}")
    assert run.returncode == 1
    said = json.loads(run.stderr)
    assert said["event"] == "importing detector large_amount: ModuleNotFoundError: No module named 'not_there'"
    assert said["hint"]


def test_dependencies_that_cannot_go_together_are_explained(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")  # asked online, uv says the same later
    declaration = folder / "pyproject.toml"
    text = declaration.read_text()
    declaration.write_text(text.replace("dependencies = [", 'dependencies = ["pandas<1", '))
    with pytest.raises(ToolchainError) as caught:
        environment_of(folder)
    assert caught.value.message.startswith("locking the dependencies of detector large_amount: ")
    assert "pandas" in caught.value.message


def test_a_lock_is_small_and_holds_nothing_of_the_notifier_or_the_command(folder: Path) -> None:
    names = re.findall(r"^([a-z0-9._-]+)(?:\[[^]]*])?==", parts_of(folder).lock, re.MULTILINE)
    assert {"confluent-kafka", "pandas", "pyarrow", "pyspark"} <= set(names)
    assert len(names) <= 25, names
    platform = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["dependencies"]
    library = tomllib.loads((CHECKOUT / "shared" / "pyproject.toml").read_text())["project"]
    of_job = library["dependencies"] + library["optional-dependencies"]["job"]
    every, job = ({re.split(r"[^a-z0-9._-]", text, maxsplit=1)[0] for text in texts} for texts in (platform, of_job))
    platform_only = every - job - {"lozenge"}
    assert {"sqlalchemy", "typer", "starlette", "uv", "kafka-python", "rich"} <= platform_only
    assert platform_only.isdisjoint(names)

"""One agent for each module, and one cache of what is built for all modules of a run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lozenge.kafka.settings import KafkaSettings
from tests.integration.deploy.worlds import World, running_world


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A cache for `LOZENGE_CACHE`; what one process of this run has built there, the others find."""
    base = tmp_path_factory.getbasetemp()
    cache = (base if worker_id == "master" else base.parent) / "cache"
    cache.mkdir(exist_ok=True)
    return cache


@pytest.fixture
def cache(built: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of this run, for this process and those that it starts."""
    monkeypatch.setenv("LOZENGE_CACHE", str(built))
    return built


@pytest.fixture(scope="module")
def world(
    kafka: KafkaSettings, built: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[World]:
    """A world in which one agent runs and nothing is deployed yet."""
    name = request.path.stem.removeprefix("test_")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOZENGE_CACHE", str(built))
        with running_world(kafka, tmp_path_factory.mktemp(name), name) as world:
            yield world

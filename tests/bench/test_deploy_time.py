"""How long `lozenge deploy` takes from a folder to its first batch, cold and warm, and where the time goes.

    python -m pytest -q -s tests/bench/test_deploy_time.py

Cold is the first deploy on a machine: the caches of uv and of Lozenge are empty, but for what `make setup` puts there.
Ratios are to the deploy of a changed rule, which is what happens every day.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lozenge.toolchain import cache_path
from lozenge_deploy.cli.author.scaffold import write
from tests.bench.world import World, wait_until, world_of
from tests.streams import AUTH

RATE = 100


@dataclass(frozen=True)
class Took:
    """One deploy, in seconds: until the command returned, until a live job had done a batch, and that one's parts.

    `made` is until the job's process began: checking, building, locking, testing, its environment.
    """

    what: str
    command: float
    in_all: float
    made: float
    session: float
    query: float
    batch: float


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Nothing is deployed in it yet, and nothing cached."""
    cache = tmp_path / "cache"
    cache.mkdir()
    for part in ("jars", "cds"):
        (cache / part).symlink_to(cache_path(part))
    monkeypatch.setenv("LOZENGE_CACHE", str(cache))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    with world_of(tmp_path, {}, RATE) as world:
        yield world


def test_a_deploy_cold_and_warm(world: World) -> None:
    for name, kind in (("first", "rule"), ("second", "rule"), ("fold", "stateful")):
        write(world.detectors, name, kind, "bench", AUTH)
    took = [
        _deploy(world, "first", "a new rule, cold"),
        _deploy(world, "second", "a new rule, warm"),
        _deploy(world, "fold", "a new fold, warm"),
    ]
    world.change("fold")
    took.append(_deploy(world, "fold", "a changed fold"))
    world.change("first")
    took.append(_deploy(world, "first", "a changed rule"))
    began = time.monotonic()
    world.lozenge("deploy", "first")
    unchanged = time.monotonic() - began
    usual = took[-1].in_all
    print(f"{'':18} command  first batch  ratio   folder to process  session  query  batch", flush=True)
    for t in took:
        print(
            f"{t.what:18} {t.command:5.1f} s  {t.in_all:9.1f} s  {t.in_all / usual:5.2f} "
            f"{t.made:18.1f} s {t.session:6.1f} {t.query:6.1f} {t.batch:6.1f}"
        )
    print(f"{'nothing changed':18} {unchanged:5.1f} s  {'-':>9}    {unchanged / usual:5.2f}", flush=True)


def _deploy(world: World, name: str, what: str) -> Took:
    began, live = time.time(), world.live(name)
    before = live.pid if live else None
    world.lozenge("deploy", name)
    command = time.time() - began
    assert wait_until(lambda: (now := world.live(name)) is not None and now.pid != before and now.first_batch_at > 0)
    report = world.live(name)
    assert report is not None
    return Took(
        what,
        command,
        max(command, report.first_batch_at - began),
        report.created - began,
        report.session_started_at - report.created,
        report.query_started_at - report.session_started_at,
        report.first_batch_at - report.query_started_at,
    )

"""Ours: the real process of a job, `python -m lozenge.job FOLDER`, under declarations that differ in one thing.

One system has no JVM of its own: all of its processes use one Spark host, which the first of them starts.

A declaration that this release does not know yet makes its system unavailable, and the row says so.
"""

import atexit
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import psutil

from lozenge.detector.manifest import read
from lozenge.errors import ConfigError
from lozenge.host import base_packages
from lozenge.protocol.job_spec import JobSpec
from lozenge.protocol.job_status import JobPhase, read_job_status
from lozenge.spark.realtime_batches import SHORT_BATCHES, SHORT_SECONDS
from lozenge_deploy.hosts.host_pool import default_size
from lozenge_deploy.hosts.host_process import HostProcess
from tests.bench.harness.system import (
    ALL_KINDS,
    BACKLOG,
    HOP,
    IN_TRANSACTIONS,
    LIFE,
    OF_A_JOB,
    UPDATE,
    Guarantees,
    HandOver,
    Shape,
    Start,
    System,
    Unavailable,
)
from tests.bench.harness.workload import Kind, Task
from tests.integration.harness import wait_for

DETECTORS = Path(__file__).with_name("detectors")
KINDS: Mapping[Kind, str] = {"rule": "rule", "aggregate": "aggregate", "fold": "stateful"}
PROJECT = """[project]
name = "{name}"
version = "1.0.0"
description = "A detector of the benchmark."

[tool.lozenge]
kind = "{kind}"
owner = "bench"
title = "Benchmark"
"""
STATE = "Spark's RocksDB, or Python; checkpoint, state topic"
EXACTLY_ONCE = Guarantees("exactly once", "every batch", writes=IN_TRANSACTIONS, state=STATE)
AT_LEAST_ONCE = Guarantees("at least once", "every batch", writes="acks=all, linger 5 ms", state=STATE)
REALTIME = Guarantees(
    "exactly once",
    "as named; what came since is reprocessed, alerts are emitted once",
    writes="acks=all, linger 0",
    state=STATE,
)
REALTIME_KINDS: frozenset[Kind] = frozenset({"rule", "aggregate"})
SAME_PACKAGES = {base_packages.SETTING: "bench"}
"""As in the environments of releases: a job that needs the same packages as its host is forked next to it."""
WINDOWS = {"lateness": "10m", "window": "10m"}


def command(start: Start, declared: Mapping[str, str], *variables: str) -> list[str]:
    """Writes the detector's folder, with what it `declared` besides; the command that runs it with the `variables`."""
    kind = start.task.kind
    folder = start.folder / start.name
    folder.mkdir(exist_ok=True)
    shutil.copyfile(DETECTORS / f"{kind}.py", folder / f"{start.name}.py")
    # several batches, or there would be no rate to measure; the batch that is declared by default is twice as large
    batch = {"max_batch": max(1, start.backlog // 10)} if start.backlog else {}
    values = {**(WINDOWS if kind == "aggregate" else {}), **batch, **declared}
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in values.items()]
    project = folder / "pyproject.toml"
    project.write_text(PROJECT.format(name=start.name, kind=KINDS[kind]) + "".join(lines), "utf-8")
    try:
        read(project)
    except ConfigError as error:
        raise Unavailable("; ".join(error.problems)) from error
    settings = f"LOZENGE_JOB_SETTINGS={json.dumps(_settings(start.task))}"
    return ["env", settings, *variables, sys.executable, "-m", "lozenge.job", f"{folder}{os.sep}"]


def warm_up_seconds(declared: Mapping[str, str]) -> float:
    """For how many seconds its batches are short, each with its commit: none but in Real-Time Mode."""
    return SHORT_BATCHES * (SHORT_SECONDS + 0.5) if "mode" in declared else 0.0


@cache
def spark_host() -> HostProcess:
    """A Spark host as the agent starts it, for all jobs of this process that are to share one."""
    folder = Path(tempfile.mkdtemp(prefix="lozenge-bench-"))
    environment = os.environ | SAME_PACKAGES
    host = HostProcess.start(folder / "h1", Path(sys.executable), environment, default_size(), "bench", now=time.time())
    atexit.register(host.kill)
    wait_for(host.ready, "the Spark host")
    return host


def on_host() -> list[str]:
    """The variables by which a job uses the host, as a fork of its fork server."""
    variables = {"LOZENGE_JOB_HOST": str(spark_host().folder)} | SAME_PACKAGES
    return [f"{name}={value}" for name, value in variables.items()]


def hand_over(declared: Mapping[str, str], variables: Callable[[], Sequence[str]] = list) -> HandOver:
    """By order files, as the agent does it; a process has these `variables` besides."""

    def begin(start: Start, generation: int, *, standby: bool) -> list[str]:
        folder = _folder(start, generation)
        folder.mkdir()
        JobSpec(generation=generation, standby=standby, settings=_settings(start.task)).write(folder)
        release = f"LOZENGE_JOB_RELEASE=r{generation}"
        return command(start, declared, f"LOZENGE_JOB_FOLDER={folder}", release, *variables())

    def in_phase(start: Start, phase: JobPhase) -> bool:
        report = read_job_status(_folder(start, 2))
        return report is not None and report.phase is phase

    def ended(start: Start) -> bool:
        report = read_job_status(_folder(start, 1))
        return report is not None and report.finished_at > 0

    def take(start: Start) -> None:
        JobSpec(generation=2, settings=_settings(start.task)).write(_folder(start, 2))
        wait_for(lambda: in_phase(start, JobPhase.LIVE), "the new release to live")

    return HandOver(
        live=partial(begin, generation=1, standby=False),
        standby=partial(begin, generation=2, standby=True),
        ready=partial(in_phase, phase=JobPhase.READY),
        take=take,
        ended=ended if "mode" in declared else None,
    )


def _settings(task: Task) -> dict[str, int]:
    return {"every": task.every} if task.kind == "aggregate" else {}


def _folder(start: Start, generation: int) -> Path:
    return start.folder / f"g{generation}"


def _system(
    name: str,
    guarantees: Guarantees,
    shapes: frozenset[Shape] = OF_A_JOB,
    core: frozenset[Shape] = frozenset(),
    **declared: str,
) -> System:
    start = partial(command, declared=declared)
    kinds = REALTIME_KINDS if guarantees is REALTIME else ALL_KINDS
    hand, seconds = hand_over(declared), warm_up_seconds(declared)
    return System(
        f"Lozenge, {name}", "ours", guarantees, start, kinds, shapes, core=core, hand_over=hand, warm_up_seconds=seconds
    )


def _on_host(name: str, **declared: str) -> System:
    def start(start: Start) -> list[str]:
        return command(start, declared, *on_host())

    def hosts() -> list[psutil.Process]:
        return [psutil.Process(spark_host().record.pid)]

    return System(f"Lozenge, {name}", "ours", EXACTLY_ONCE, start, hand_over=hand_over(declared, on_host), hosts=hosts)


SYSTEMS = (
    _system("trigger 0", EXACTLY_ONCE, core=BACKLOG | LIFE, trigger="0s"),
    _system("trigger 1 s", EXACTLY_ONCE, HOP | LIFE | UPDATE, UPDATE, trigger="1s"),
    _on_host("on a Spark host", trigger="0s"),
    _system("at least once", AT_LEAST_ONCE, trigger="0s", guarantee="at-least-once"),
    _system("realtime, commit 1 m", REALTIME, HOP | LIFE | UPDATE, HOP | UPDATE, mode="realtime"),
    # with a commit that seldom, what it holds up is less than the 99th percentile looks at
    _system("realtime, commit 5 m", REALTIME, mode="realtime", trigger="5m"),
    # a commit holds events up, so this one commits as often as it can: each segment has several commits in it
    _system("realtime, commit 5 s", REALTIME, mode="realtime", trigger="5s"),
)

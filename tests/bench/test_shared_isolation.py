"""Twenty detectors that share JVMs at 300 events a second: what happens to one of them costs the others nothing.

    python -m pytest -q -s tests/bench/test_shared_isolation.py    LOZENGE_SHARED_QUIET=14 LOZENGE_SHARED_SECONDS=60

One after the other, one is killed, one hangs, one eats memory, one floods its log, one is updated, and a new one is
deployed. `LOZENGE_SHARED_HARMS="one hangs, one is deployed"` does these alone. Each time it prints the p99 latency of
those that nobody touched, next to a control before, and whether a process or a batch id of theirs changed. Then one
fills the heap of each JVM that it comes to, until it has one of its own, and a host is killed: all others come back. In
the end every event has each of its alerts exactly once. It takes eight gigabytes and a machine of its own.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from lozenge.host.address import published
from lozenge.kafka.topic_admin import ensure_topics
from lozenge_deploy.cli.author.scaffold import write
from lozenge_deploy.hosts.host_process import HOSTS
from lozenge_deploy.supervision.job_process import job_processes
from tests.bench.harms import FLOODS, HARMS, HEAP, deploy_what_becomes_unhealthy
from tests.bench.harness.platform import TOPICS
from tests.bench.soak import quantile
from tests.bench.world import TRIGGER, Operations, World, wait_until, world_of
from tests.streams import AUTH

QUIET = [f"quiet_{n}" for n in range(int(os.environ.get("LOZENGE_SHARED_QUIET", "14")))]
HOSTILE = {"hangs": HARMS["hangs"], "eats": HARMS["eats memory"], "floods": FLOODS, "fills": HEAP}
TOUCHED, NEWCOMER = ["killed", "updated", *HOSTILE], "newcomer"
SECONDS = float(os.environ.get("LOZENGE_SHARED_SECONDS", "60"))
ASKED = [each.strip() for each in os.environ.get("LOZENGE_SHARED_HARMS", "").split(",") if each.strip()]
RATE, WARM_SECONDS, ALERT_SECONDS = 300, 30.0, 10.0
NOTICED = 1.10


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    kinds = {name: ("rule", "stateful")[n % 2] for n, name in enumerate(QUIET)} | dict.fromkeys(TOUCHED, "rule")
    with world_of(tmp_path_factory.mktemp("shared"), kinds, RATE, trusted=True) as world:
        write(world.detectors, NEWCOMER, "rule", "tests", AUTH)
        world.declare(NEWCOMER, trigger=TRIGGER)
        ensure_topics(world.kafka, TOPICS.detector(NEWCOMER).contracts())
        yield world


def test_what_happens_to_one_costs_the_others_nothing(world: World) -> None:
    files = {name: deploy_what_becomes_unhealthy(world, name, harm, "--watch", "0s") for name, harm in HOSTILE.items()}
    hosts = _hosts(world)
    print(f"{len(_all(world))} detectors on {len(hosts)} hosts: {sorted(map(len, hosts.values()))}", flush=True)
    time.sleep(WARM_SECONDS)
    operations = Operations(world)
    control, _ = _measured(world, lambda: None)
    print(f"control: p99 {control:.2f} s", flush=True)
    ratios = []
    harms: dict[str, Callable[[], object]] = {
        "one is killed": lambda: operations.kill_job("killed"),
        **{f"one {name}": files[name].touch for name in HOSTILE if name != "fills"},
        "one is updated": lambda: operations.update("updated"),
        "one is deployed": lambda: world.lozenge("deploy", NEWCOMER),
    }
    assert not (unknown := {*ASKED} - {*harms}), f"{unknown}: there are {', '.join(harms)}"
    for what in ASKED or harms:
        p99, disturbed = _measured(world, harms[what])
        for file in files.values():
            file.unlink(missing_ok=True)
        ratios.append(p99 / control)
        print(f"{what}: p99 {p99:.2f} s, {p99 / control:.2f} of the control; {disturbed or 'undisturbed'}", flush=True)
        assert not disturbed
    _recovers(world, "one fills the heap", files["fills"].touch, "fills")
    files["fills"].unlink()
    _recovers(world, "a host is killed", lambda: os.kill(next(iter(_hosts(world))), signal.SIGKILL))
    world.traffic.end()
    wrong = world.await_all()
    print(wrong or "every event's alert exactly once, in all of them", flush=True)
    assert not wrong
    assert max(ratios) < NOTICED, f"{max(ratios):.2f} of the control"


def _measured(world: World, harm: Callable[[], object]) -> tuple[float, list[str]]:
    """The p99 latency of the quiet ones while `harm` is done and for a while after, and how they were disturbed."""
    begin = time.time()
    harm()
    time.sleep(max(0.0, begin + SECONDS - time.time()))
    end = time.time()
    time.sleep(ALERT_SECONDS)  # the alerts of what was sent within are read
    latencies = [latency for name in QUIET for latency in world.alerts.latencies(name, begin, end)]
    return quantile(latencies, 0.99), [line for name in QUIET for line in world.watcher.disturbances(name, begin, end)]


def _recovers(world: World, what: str, harm: Callable[[], object], *but: str) -> None:
    """Prints how long until each detector, `but` these, has raised an alert on what was sent after `harm`."""
    before, names = _hosts(world), {*_all(world)} - {*but}
    harm()
    assert wait_until(lambda: any(pid not in _hosts(world) for pid in before)), f"{what}: no host has ended"
    ended, since = time.monotonic(), time.time()
    assert wait_until(lambda: all(_newest(world, name) > since for name in names))
    print(f"{what}: {len(before)} hosts, all detectors raise alerts after {time.monotonic() - ended:.1f} s", flush=True)


def _newest(world: World, name: str) -> float:
    """When the newest event was sent of which `name` has raised an alert."""
    received = world.alerts.received[name]
    return max((alert.at - alert.latency for alert in received[-50:]), default=0.0)


def _all(world: World) -> list[str]:
    return [name for name in world.kinds if world.live(name) is not None]


def _hosts(world: World) -> dict[int, list[str]]:
    """The detectors that run on each JVM that is shared, by its process."""
    found: dict[int, list[str]] = {}
    for name in world.kinds:
        for job in job_processes(world.jobs / name):
            address = published(world.jobs / HOSTS / job.record.spark_host) if job.record.spark_host else None
            if address is not None and job.alive() and psutil.pid_exists(address.jvm_pid):
                found.setdefault(address.jvm_pid, []).append(name)
    return found

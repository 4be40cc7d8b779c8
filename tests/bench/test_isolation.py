"""Three hostile detectors among twelve: the other nine lose nothing and answer as quickly as with three quiet ones.

    python -m pytest -q -s tests/bench/test_isolation.py    LOZENGE_ISOLATION_QUIET=9 LOZENGE_ISOLATION_SECONDS=180

One ends at every commit, one eats memory, one floods its log. They are quiet until a file makes them hostile: the
first half of the run is the control of the second. Twelve detectors take ten gigabytes and a machine of their own.
"""

import os
import time
from collections.abc import Iterator

import pytest

from tests.bench.harms import FLOODS, HARMS, deploy_what_becomes_unhealthy
from tests.bench.soak import quantile
from tests.bench.world import World, world_of

HOSTILE = {"crashes": HARMS["ends"], "hogs": HARMS["eats memory"], "floods": FLOODS}
HOSTILES = os.environ.get("LOZENGE_ISOLATION_HOSTILE", ",".join(HOSTILE)).split(",")
QUIET = [f"quiet_{n}" for n in range(int(os.environ.get("LOZENGE_ISOLATION_QUIET", "9")))]
SECONDS = float(os.environ.get("LOZENGE_ISOLATION_SECONDS", "180"))
WARM_SECONDS, ALERT_SECONDS = 30.0, 10.0
RATE = 100
NOTICED = 1.10


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    kinds = {name: ("rule", "stateful")[n % 2] for n, name in enumerate(QUIET)} | dict.fromkeys(HOSTILES, "rule")
    with world_of(tmp_path_factory.mktemp("isolation"), kinds, RATE) as world:
        yield world


def test_hostile_detectors_cost_the_others_nothing(world: World) -> None:
    files = [deploy_what_becomes_unhealthy(world, name, HOSTILE[name], "--watch", "0s") for name in HOSTILES]
    time.sleep(WARM_SECONDS)
    control = _p99(world)
    for file in files:
        file.touch()
    hostile = _p99(world)
    for file in files:
        file.unlink()
    ratios = {name: hostile[name] / control[name] for name in control}
    for name, ratio in ratios.items():
        print(f"{name:10} p99 {control[name]:6.2f} s, with the hostile ones {hostile[name]:6.2f} s: {ratio:.2f}")
    world.traffic.end()
    wrong = world.await_all()
    print(wrong or "every event's alert exactly once, in all of them", flush=True)
    assert not wrong
    assert ratios["all"] < NOTICED


def _p99(world: World) -> dict[str, float]:
    """The p99 latency of each quiet detector over the next seconds, and of all of them together."""
    begin = time.time()
    time.sleep(SECONDS)
    end = time.time()
    time.sleep(ALERT_SECONDS)  # the alerts of what was sent within are read
    each = {name: world.alerts.latencies(name, begin, end) for name in QUIET}
    each["all"] = [latency for latencies in each.values() for latency in latencies]
    return {name: quantile(latencies, 0.99) for name, latencies in each.items()}

"""A release that becomes unhealthy when it is live is contained and rolled back, and the others notice nothing of it.

    python -m pytest -q -s tests/bench/test_containment.py

Two rules and a fold process 100 events a second. Release after release of one rule hangs, ends, raises, eats memory or
floods its log on demand. A broker that is away while a change is watched rolls nothing back.
"""

import time
from collections.abc import Iterator

import pytest

from lozenge_deploy.control.client import Control
from tests.bench.harms import FLOODS, HARMS, deploy_what_becomes_unhealthy
from tests.bench.world import Operations, World, wait_until, world_of

DETECTORS = {"well": "rule", "fold": "stateful", "unhealthy": "rule"}
RATE = 100
LOG_BYTES = 2 * 200_000_000
"""What a flood of batches may leave; see `Shipper`: it empties what is over 32 MB as soon as it looks."""
OUTAGE_SECONDS = 70.0


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world_of(tmp_path_factory.mktemp("containment"), DETECTORS, RATE) as world:
        yield world


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_an_unhealthy_release_is_rolled_back_and_the_others_continue(world: World, harm: str) -> None:
    file = deploy_what_becomes_unhealthy(world, "unhealthy", harm)
    begin, pid = time.time(), world.pid("unhealthy")
    file.touch()
    assert wait_until(lambda: _rolled_back(world, "unhealthy", begin) != "")
    after = time.time() - begin
    assert wait_until(lambda: (live := world.live("unhealthy")) is not None and live.pid != pid)
    again = time.time() - begin
    file.unlink()
    time.sleep(5)
    assert not _disturbed(world, begin)
    why = _rolled_back(world, "unhealthy", begin).splitlines()[0]
    print(f"rolled back after {after:.0f} s, live again after {again:.0f} s: {why}", flush=True)


def test_a_flooded_log_takes_little_room_and_the_others_continue(world: World) -> None:
    file = deploy_what_becomes_unhealthy(world, "unhealthy", FLOODS)
    begin = time.time()
    file.touch()
    sizes = []
    while time.time() < begin + 30:
        sizes.append(sum(log.stat().st_size for log in (world.jobs / "unhealthy").glob("*/log")))
        time.sleep(0.2)
    file.unlink()
    assert not _disturbed(world, begin)
    assert max(sizes) < LOG_BYTES
    print(f"a million lines a batch: the log took {max(sizes) / 1e6:.0f} MB at most", flush=True)
    Operations(world).rollback("unhealthy")


def test_a_broker_that_is_away_while_a_change_is_watched_rolls_nothing_back(world: World) -> None:
    Operations(world).update("well")
    pids, begin = {name: world.pid(name) for name in DETECTORS}, time.time()
    world.broker.kill()
    time.sleep(OUTAGE_SECONDS)
    world.broker.start()
    raised = {name: len(world.alerts.received[name]) for name in DETECTORS}
    assert wait_until(lambda: all(len(world.alerts.received[name]) > raised[name] for name in DETECTORS))
    back = time.time() - begin - OUTAGE_SECONDS
    time.sleep(60)
    assert not any(_rolled_back(world, name, begin) for name in DETECTORS)
    same = [name for name in DETECTORS if world.pid(name) == pids[name]]
    print(
        f"broker away for {OUTAGE_SECONDS:.0f} s: alerts of all {back:.1f} s later; same process: {same or 'none'}",
        flush=True,
    )


def test_in_the_end_every_event_has_its_alert_once(world: World) -> None:
    world.traffic.end()
    assert not world.await_all()


def _disturbed(world: World, begin: float) -> list[str]:
    others = [name for name in DETECTORS if name != "unhealthy"]
    return [line for name in others for line in world.watcher.disturbances(name, begin, time.time())]


def _rolled_back(world: World, detector: str, begin: float) -> str:
    """Why the agent has rolled a change of it back since `begin`; "" if it has not."""
    with Control(world.kafka) as control:
        rolled_back = [h for h in control.history(detector) if h.what == "rolled back" and h.at.timestamp() > begin]
    return rolled_back[-1].detail if rolled_back else ""

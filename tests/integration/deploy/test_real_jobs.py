"""A deployment from end to end, with all its real parts: the command, the agent, releases, jobs on Spark, a broker."""

from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from lozenge.contracts.avro import Codec
from lozenge.kafka.schema_topic import announce
from lozenge.kafka.settings import KafkaSettings
from lozenge.process.periodic import every
from tests.integration.deploy.sources import write_quick_tests
from tests.integration.deploy.worlds import World, running_world
from tests.integration.harness import committed, event, send, wait_for, wider_events


@contextmanager
def traffic(world: World, ids: set[str]) -> Iterator[None]:
    """Events that the rule alerts on, ten times a second, for the length of the block; `ids` are theirs."""
    with every(0.1, lambda: ids.update(world.large(2)), "events"):
        yield


@pytest.fixture(scope="module")
def world(kafka: KafkaSettings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world with the user's own cache, where Spark finds what makes its starts quick."""
    with running_world(kafka, tmp_path_factory.mktemp("real"), "real") as world:
        yield world


@pytest.fixture
def one(world: World) -> str:
    """A rule whose own tests take no time."""
    write_quick_tests(world.source(world.one))
    return world.one


def test_a_rule_is_deployed_updated_into_real_time_mode_and_stopped_with_each_alert_once(
    world: World, one: str
) -> None:
    assert f"{one} r1 is live" in world.lozenge("deploy", one)
    first, ids = world.pid(one), set[str]()
    [running] = world.running(one)
    assert list((running.folder / "tmp").glob("blockmgr-*")), "Spark writes elsewhere"
    declaration = world.source(one) / "pyproject.toml"
    with traffic(world, ids):
        assert "live" in world.lozenge("set", one, "limit=600")
        assert world.pid(one) == first
        declaration.write_text(declaration.read_text("utf-8") + 'mode = "realtime"\n', "utf-8")
        assert f"{one} r2 is live" in world.lozenge("deploy", one)
        assert world.pid(one) != first
        assert "offsets (committed: " in world.lozenge("status", one)
        seen = world.large(1)
        wait_for(lambda: world.alerts(one, seen), "an alert in Real-Time Mode")
    ids |= seen
    world.assert_each_once(one, ids)
    assert {a["release"] for a in world.alerts(one, ids)} == {"r1", "r2"}

    last, wider = world.pid(one), wider_events()
    announce(world.kafka, [wider])
    sent = [event(8 * 10**9 + n, f"card_{n % 8}", "900.00", wallet="w") for n in range(20)]
    send(world.kafka, sent, Codec(wider))
    world.assert_each_once(one, {e["event_id"] for e in sent} | world.large(10))
    assert world.pid(one) == last, "a field that upstream adds is no reason to start again"
    assert not committed(world.kafka, world.kafka.topics.dead_letters(one))

    [running] = world.running(one)
    log = running.folder / "log"
    before = len(log.read_text("utf-8"))
    world.stop_agents()
    job = psutil.Process(world.pid(one))
    for process in [*job.children(recursive=True), job]:
        process.terminate()  # as a signal to the container does, which reaches the JVM too
    wait_for(lambda: not running.alive(), "the end of the job")
    assert running.exit_code() == 0
    assert "Traceback" not in log.read_text("utf-8")[before:]

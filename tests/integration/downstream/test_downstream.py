"""The whole notifier on a real broker: killed at every commit, fenced, cut off, with new topics under it.

All tests but the last ones share one platform, store and receiver, as in life; each ends by checking everything so far.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from lozenge.contracts.topics import DEAD_LETTER_BYTES
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.toolchain.jars import jars
from lozenge.toolchain.java import java_home
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from lozenge_downstream.dead_letter_encoder import TRUNCATED_BYTES
from tests.integration.clients import limit_record_size
from tests.integration.downstream.notifier_process import POINTS
from tests.integration.downstream.notifying import DEADLINE_SECONDS, World, world_of

pytestmark = pytest.mark.integration

EXAMPLES = Path(__file__).parents[3] / "examples"
EXAMPLE, JAVA_EXAMPLE = EXAMPLES / "consume_notifications.py", EXAMPLES / "ConsumeNotifications.java"
LARGEST = 1_048_588 - 61 - 50
"""Of the value of a record that a topic takes by default, in a batch of its own, with its key and one header."""


@pytest.fixture(scope="module")
def world(kafka: KafkaSettings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("downstream")
    with world_of(kafka, folder, f"sqlite:///{folder / 'store.db'}") as world:
        yield world


def group_offsets(world: World) -> dict[TopicPartition, int]:
    group = world.topics.prefixed("downstream")
    admin = KafkaAdminClient(bootstrap_servers=world.kafka.bootstrap)
    try:
        return {partition: found.offset for partition, found in admin.list_group_offsets([group])[group].items()}
    finally:
        admin.close()


def test_each_alert_of_every_detector_is_notified_once_and_no_lag_remains(world: World) -> None:
    earlier = len(world.read(world.topics.dead_letters("downstream")))
    largest = os.urandom(LARGEST)
    world.send("one", range(300))
    world.send("two", range(100))
    world.send("one", range(0, 300, 3))
    world.send_poison("two", b"not an alert")
    world.send_poison("two", largest)
    with world.notifier():
        world.settle()
    poison, whole = world.read(world.topics.dead_letters("downstream"))[earlier:]
    headers = dict(poison.headers)
    assert (poison.key, poison.value, headers["source"]) == (b"poison", b"not an alert", b"\xff\0")
    assert headers["__connect.errors.topic"] == world.topics.detector("two").alerts.encode()
    assert whole.value == largest
    consumer = KafkaConsumer(bootstrap_servers=world.kafka.bootstrap)
    offsets = group_offsets(world)
    read = {partition.topic for partition in offsets}
    assert read >= {world.topics.detector(name).alerts for name in ("one", "two")}
    assert offsets == consumer.end_offsets(list(offsets))
    consumer.close()


def test_a_dead_letter_too_large_for_its_topic_is_cut_and_stops_nothing(world: World) -> None:
    """As in a topic that an earlier release has made, or somebody has changed."""
    dead_letters_topic = world.topics.dead_letters("downstream")
    limit_record_size(world.kafka, dead_letters_topic, 200_000)
    values = [os.urandom(10), os.urandom(900_000), os.urandom(150_000), os.urandom(150_000), os.urandom(20)]
    try:
        for value in values:
            world.send_poison("two", value)
        world.send("two", range(500, 510))
        with world.notifier():
            world.settle()
    finally:
        limit_record_size(world.kafka, dead_letters_topic, DEAD_LETTER_BYTES)
    dead_letters = [r for r in world.read(world.topics.dead_letters("downstream")) if r.key == b"poison"]
    numbers = [int(dict(dead_letter.headers)["lozenge-seq"]) for dead_letter in dead_letters]
    assert numbers == list(range(len(numbers)))
    small, large, *others = dead_letters[-len(values) :]
    assert [dead_letter.value for dead_letter in (small, *others)] == [values[0], *values[2:]]
    headers = dict(large.headers)
    assert (large.value, headers["lozenge-truncated"]) == (values[1][:TRUNCATED_BYTES], b"900000")
    assert headers["__connect.errors.topic"] == world.topics.detector("two").alerts.encode()
    assert headers["__connect.errors.exception.class.name"] == b"DecodeError"


def test_new_topics_are_picked_up_by_a_notifier_that_runs_and_by_one_that_starts(world: World) -> None:
    with world.notifier():
        world.send("one", range(300, 310))
        world.settle()
        ensure_topics(world.kafka, world.topics.detector("newcomer").contracts())
        world.send("newcomer", range(50))
        world.settle()
    ensure_topics(world.kafka, world.topics.detector("meanwhile").contracts())
    world.send("meanwhile", range(40))
    with world.notifier():
        world.settle()


def test_without_webhooks_notifications_are_still_published(world: World) -> None:
    # the other tests send more alerts within the hour than the default limit lets through
    (world.folder / "empty.toml").write_text("[rate_limit]\nalerts = 1000000\n[route]\n")
    with world.notifier(LOZENGE_DOWNSTREAM_ROUTING=str(world.folder / "empty.toml")):
        before = len(world.read(world.topics.notifications))
        world.send("one", range(400, 410))
        world.wait_for(lambda: len(world.read(world.topics.notifications)) == before + 10, "notifications")
    world.unrouted += 10


@pytest.mark.parametrize("point", POINTS)
def test_a_notifier_killed_at_any_step_loses_and_repeats_nothing(world: World, point: str) -> None:
    start = 1000 * (1 + list(POINTS).index(point))
    for attempt in range(2):
        world.send("one", range(start + attempt * 100, start + attempt * 100 + 100))
        world.dies_at(point)
    world.send("two", range(start, start + 20))
    with world.notifier():
        world.settle()


def test_two_share_the_work_and_one_continues_alone(world: World) -> None:
    first = world.start()
    try:
        world.send("one", range(20_000, 20_010))
        world.settle()
        with world.notifier():
            world.send("one", range(20_010, 20_030))
            world.send("two", range(20_010, 20_030))
            world.settle()
            first.kill()
            world.send("one", range(20_030, 20_050))
            world.send("two", range(20_030, 20_050))
            world.settle()
    finally:
        first.kill()


def test_another_store_is_refused(world: World) -> None:
    world.send("one", range(700, 710))
    with world.notifier():
        world.settle()
    other = world.start(LOZENGE_DOWNSTREAM_STORE=f"sqlite:///{world.folder / 'other.db'}")
    try:
        assert other.ends(DEADLINE_SECONDS) == 1
    finally:
        other.kill()
    assert "was not written from the store" in other.errors
    world.check()


def test_it_stops_in_the_middle_of_a_webhook_that_does_not_answer(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        mute.settimeout(DEADLINE_SECONDS)
        routing = world.folder / "mute.toml"
        address = f"http://127.0.0.1:{mute.getsockname()[1]}/"
        routing.write_text(
            (world.folder / "routing.toml").read_text().replace(world.receiver.url, address) + "timeout = 120\n"
        )
        world.send("one", range(50_000, 50_003))
        with world.notifier(LOZENGE_DOWNSTREAM_ROUTING=str(routing)):
            connection, _ = mute.accept()
            assert connection.recv(1)
        connection.close()
    with world.notifier():
        world.settle()


def test_a_recreated_topic_is_read_from_its_beginning(world: World) -> None:
    admin = AdminClient(world.kafka.client())
    alerts = world.topics.detector("recreated").alerts
    ensure_topics(world.kafka, world.topics.detector("recreated").contracts())
    world.send("recreated", range(50))
    with world.notifier():
        world.settle()
    for future in admin.delete_topics([alerts]).values():
        future.result()
    world.wait_for(lambda: alerts not in admin.list_topics(timeout=10).topics, "the topic's end")
    ensure_topics(world.kafka, world.topics.detector("recreated").contracts())
    world.send("recreated", range(48, 200))  # more than before: the former positions are within it
    with world.notifier():
        world.settle()


@pytest.mark.parametrize(
    ("setting", "value", "code", "says"),
    [
        ("LOZENGE_KAFKA_BOOTSTRAP", "127.0.0.1:1", 3, "no Kafka broker answers at 127.0.0.1:1"),
        ("LOZENGE_DOWNSTREAM_ROUTING", "nowhere.toml", 2, "reading the routing file nowhere.toml: No such file"),
        ("LOZENGE_DOWNSTREAM_KEEP_DAYS", "never", 2, "LOZENGE_DOWNSTREAM_KEEP_DAYS: "),
        ("LOZENGE_DOWNSTREAM_STORE", "sqlite:////no/such/folder/s.db", 2, "its folder must exist"),
    ],
)
def test_wrong_settings_end_the_notifier_with_one_sentence(
    world: World, setting: str, value: str, code: int, says: str
) -> None:
    ended = world.start("a broker that does not answer is given up", **{setting: value})
    assert ended.ends(DEADLINE_SECONDS) == code, ended.errors
    assert (says in ended.errors, "Traceback" in ended.errors) == (True, False), ended.errors


FAILS_BEFORE_IT_RUNS = """
import runpy, time
from confluent_kafka import ConsumerGroupState
from confluent_kafka.admin import AdminClient
from lozenge.kafka.settings import KafkaSettings
from lozenge_downstream import service
from lozenge_downstream.store import StoreUnavailable

def fail(self):
    kafka = KafkaSettings.load()
    admin, group = AdminClient(kafka.client()), kafka.topics.prefixed("downstream")
    # its group assigns partitions to it, which it never learns
    while admin.describe_consumer_groups([group])[group].result().state is not ConsumerGroupState.STABLE:
        time.sleep(0.05)
    raise StoreUnavailable("writing the store: disk full")

service.RoutingWatch.start = fail
runpy.run_module("lozenge_downstream", run_name="__main__")
"""


def test_a_notifier_that_fails_before_it_runs_ends(world: World) -> None:
    command = [sys.executable, "-c", FAILS_BEFORE_IT_RUNS]
    ended = subprocess.run(command, env=world.environment(), capture_output=True, text=True, timeout=60)
    assert (ended.returncode, "disk full" in ended.stderr) == (3, True), ended.stderr


def test_a_notifier_survives_an_outage_of_which_consumers_see_nothing_and_stops_during_another(tmp_path: Path) -> None:
    """The example consumers in every language read what it has published."""
    with EmbeddedBroker(tmp_path / "broker") as own:
        kafka, store = KafkaSettings(bootstrap=own.bootstrap), f"sqlite:///{tmp_path / 'store.db'}"
        with world_of(kafka, tmp_path, store) as world, world.notifier() as process:
            world.send("one", range(10))
            world.settle()
            own.kill()
            own.start()
            world.send("one", range(10, 50))
            world.settle()
            assert process.exit_code is None
            _check_examples(world)
            own.kill()


def _check_examples(world: World) -> None:
    commands = [[sys.executable, str(EXAMPLE)], *([[*java, str(JAVA_EXAMPLE)]] if (java := _java()) else [])]
    running = [
        subprocess.Popen(
            [*command, world.kafka.bootstrap, "--from-beginning"],
            env=world.environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        for command in commands
    ]
    for example in running:  # each ends ten seconds after the last record
        output, _ = example.communicate(timeout=DEADLINE_SECONDS)
        lines = output.splitlines()
        assert (example.returncode, len(lines)) == (0, len(world.alert_ids))
        assert not any("GAP" in line for line in lines)


def _java() -> list[str]:
    """The command that compiles and runs a program; empty if this Java runs programs and compiles none."""
    java = str(java_home() / "bin" / "java")
    modules = subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=True).stdout
    classes = [*jars("broker"), *(Path(pyspark.__file__).parent / "jars").glob("avro-1*.jar")]
    return [java, "-cp", os.pathsep.join(map(str, classes))] if "jdk.compiler" in modules else []

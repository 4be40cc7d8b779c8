"""Raw records in, upstream as a process of its own, and what an independent reader finds in the topics."""

import json
import os
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPythonPartition

from lozenge.contracts.dead_letters import RAW_POSITION, SOURCE_OFFSET
from lozenge.contracts.partitioner import partition_of
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.spark.checkpoint import Offsets
from lozenge.streams.project import STREAMS_VARIABLE
from tests.integration import clients
from tests.integration.harness import committed, ended_behind, group_offsets, move
from tests.integration.probe import ACTIVITY, probe
from tests.streams import RAW_ISO, RAW_JSON, event_codec, every_topic, with_json_alone
from tests.upstream.samples import PAN, flat

KEY = "the-token-key-of-this-test"
CHILD = Path(__file__).with_name("upstream_child.py")
DEADLINE_SECONDS = 600.0


class Bench:
    """Raw records in, a process to normalise them, and what it has written since the bench was set up."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self.kafka, self.topics = kafka, kafka.topics
        self.raw = (self.topics.prefixed(RAW_JSON), self.topics.prefixed(RAW_ISO))
        self.by_terminal, self.dead = self.topics.events("auth", "terminal"), self.topics.dead_letters("upstream")
        ensure_topics(kafka, every_topic(self.topics))
        self._producer = Producer(self.kafka.client(message_max_bytes=2_000_000))
        self.start = {
            topic: self.ends(topic) for topic in (*self.raw, self.topics.events("auth"), self.by_terminal, self.dead)
        }
        self._instances: list[str] = []
        self.commit({topic: self.start[topic] for topic in self.raw})

    def ends(self, topic: str) -> dict[str, int]:
        """The next offset of every partition."""
        return {str(partition): end for partition, end in clients.ends(self.kafka, topic).items()}

    def send(
        self, topic: str, value: bytes | None, card: str = "card", headers: Any = None, *, timestamp: int = 0
    ) -> None:
        """Queues one raw record; `flush` makes it so. Its `timestamp` in milliseconds is that of now unless given."""
        key = card.encode()
        self._producer.produce(
            topic, value, key, partition_of(key, self.topics.partitions), headers=headers, timestamp=timestamp
        )
        self._producer.poll(0)

    def flush(self) -> None:
        """Returns when the broker has every record sent."""
        assert self._producer.flush(30) == 0

    def commit(self, offsets: Offsets) -> None:
        """Moves the group, as an operator's tool would while upstream is down."""
        for topic, of in offsets.items():
            move(self.kafka, "upstream", {int(partition): at for partition, at in of.items()}, topic)

    def committed(self) -> Offsets:
        """The group's position, by topic and partition."""
        return {t: {str(p): at for p, (at, _) in group_offsets(self.kafka, "upstream", t).items()} for t in self.raw}

    def done(self) -> bool:
        """Whether everything sent so far was processed."""
        return self.committed() == {topic: self.ends(topic) for topic in self.raw}

    def processed(self) -> int:
        """How many raw records lie before the group's position."""
        return sum(at - self.start[t][p] for t, ends in self.committed().items() for p, at in ends.items())

    def written(self, topic: str) -> list[Any]:
        """Every committed record of `topic` since the set-up."""
        starts = {int(partition): offset for partition, offset in self.start[topic].items()}
        return probe(self.kafka, topic, starts).read_to_end()

    def ids(self, topic: str) -> Counter[bytes]:
        """How often a reader of committed records of `topic` has found each event id since the set-up."""
        consumer = KafkaConsumer(
            **self.kafka.kafka_python(), isolation_level="read_committed", enable_auto_commit=False, check_crcs=False
        )
        try:
            partitions = [KafkaPythonPartition(topic, p) for p in range(self.topics.partitions)]
            consumer.assign(partitions)
            for partition in partitions:
                consumer.seek(partition, self.start[topic][str(partition.partition)])
            ends = consumer.end_offsets(partitions)
            found = Counter[bytes]()
            deadline = time.monotonic() + DEADLINE_SECONDS
            while any(consumer.position(partition) < end for partition, end in ends.items()):
                assert time.monotonic() < deadline, f"{topic} was not read to its end"
                for records in consumer.poll(1000, max_records=20_000).values():
                    found.update(dict(record.headers)["ce_id"] for record in records)
            return found
        finally:
            consumer.close()

    def open(self) -> bool:
        """Whether readers of committed records wait for the end of a transaction."""
        ends = []
        for level in ("read_committed", "read_uncommitted"):
            consumer = KafkaConsumer(**self.kafka.kafka_python(), isolation_level=level, enable_auto_commit=False)
            ends.append(consumer.end_offsets([KafkaPythonPartition(self.topics.events("auth"), p) for p in range(4)]))
            consumer.close()
        return bool(ends[0] != ends[1])

    def samples(self, instance: int | None = None) -> Counter[str]:
        """What the instances started here have reported, added up; or what the n-th of them has."""
        wanted = self._instances if instance is None else [self._instances[instance]]
        newest = {record.key: record.value for record in committed(self.kafka, self.topics.metrics)}
        found = Counter[str]()
        for name in wanted:
            if (value := newest.get(f"upstream/{name}".encode())) is not None:
                found.update(json.loads(value).get("samples", {}))
        return found

    @contextmanager
    def upstream(self, folder: Path, dies: str = "", **settings: str) -> Iterator[subprocess.Popen[bytes]]:
        """A running upstream of AUTH-JSON, killed at the end of the block if it is still there.

        Its words are in `stderr`. Once the file `dies` is there, it is killed inside its next transaction.
        """
        command = [sys.executable, str(CHILD), dies] if dies else [sys.executable, "-m", "lozenge_upstream"]
        log = folder / "stderr"
        instance = uuid.uuid4().hex[:8]
        self._instances.append(instance)
        env = (
            os.environ
            | self.kafka.variables
            | {
                STREAMS_VARIABLE: str(with_json_alone(folder)),
                "LOZENGE_UPSTREAM_INSTANCE": instance,
                "LOZENGE_UPSTREAM_TOKEN_KEY": KEY,
                "LOZENGE_UPSTREAM_TRIGGER_SECONDS": "0.2",
                **{f"LOZENGE_UPSTREAM_{name}": value for name, value in settings.items()},
            }
        )
        with log.open("ab") as file:
            process = subprocess.Popen(command, env=env, stderr=file, process_group=0)
        with ended_behind(process, 40):
            yield process


def send_thousand(bench: Bench, first: int, count: int = 1_000) -> None:
    """So many raw records of fifty cards, each twentieth of them broken and with a wrong header of its position."""
    lie = [(SOURCE_OFFSET, b"999999999"), (RAW_POSITION, b"AUTH-JSON/0/999999999")]
    for n in range(first, first + count):
        good = n % 20 != 0
        value = flat(txn_id=f"t-{n}", pan=int(PAN) + n % 50) if good else b"{"
        bench.send(bench.topics.prefixed(RAW_JSON), value, f"card-{n % 50}", headers=None if good else lie)
    bench.flush()


def assert_each_came_out_once(bench: Bench, sent: int, topics: Iterable[str]) -> None:
    """Each of the `sent` raw records of AUTH-JSON is one dead letter, or one event in each of the `topics`."""
    decode = event_codec().decode
    dead = Counter[tuple[int, int]]()
    for record in bench.written(bench.dead):
        _, partition, offset = dict(record.headers)[RAW_POSITION].decode().split("/")
        dead[int(partition), int(offset)] += 1
    for topic in topics:
        origins = (decode(record.value)["raw"] for record in bench.written(topic))
        found = dead + Counter((raw["partition"], raw["offset"]) for raw in origins)
        assert set(found.values()) == {1}
        assert len(found) == sent


def wait(condition: Callable[[], bool], what: str, process: subprocess.Popen[bytes] | None = None) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        seen = ACTIVITY.count
        if condition():
            return
        assert process is None or process.poll() is None, f"upstream ended with {process.poll()}"
        assert time.monotonic() < deadline, f"waited {DEADLINE_SECONDS:g} s for {what}"
        time.sleep(0.02)
        ACTIVITY.wait_beyond(seen, 0.2)

"""A million alerts through a notifier that is killed every few seconds, to receivers that misbehave.

`make bench-pytest ARGS="-k notifier_soak"`; `LOZENGE_SOAK_ALERTS=100000` for fewer. Prints rate, memory and the store's
size; asserts that none is lost and none is there twice by `webhook-id`, in Kafka and at every receiver.

One alert in a hundred goes to a receiver that fails each message the first time: with 500, with 429, by silence, by
hanging up, by an answer that drips or that has 10 GiB.
"""

import asyncio
import contextlib
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

import psutil
import pytest
from kafka import KafkaConsumer, TopicPartition
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from lozenge.contracts.avro import Codec
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from tests.bench.harness.consumer import Recorder
from tests.bench.harness.platform import TOPICS
from tests.bench.harness.system import WEBHOOK_SECRET
from tests.bench.harness.webhooks import Noting, serve
from tests.bench.test_notifier import Alerts

ALERTS = int(os.environ.get("LOZENGE_SOAK_ALERTS", "1000000"))
KILL_SECONDS = (3.0, 9.0)
QUIET_SECONDS = 120.0
FAILINGS = ("500", "429", "hang", "close", "drip", "endless")
"""Which failing an alert meets is by the last two digits of its card: 00 to 05; the others meet none."""
CHANNEL = """
[channels.{name}]
type = "webhook"
url = "{url}"
networks = ["127.0.0.0/8"]
secret = {{ env = "BENCH_SECRET" }}
timeout = 1
attempts = 100
first_retry = 0.5
max_retry = 2
concurrency = 64
"""
ROUTE = """
[[route.routes]]
name = "{name}"
matchers = ['entity =~ "card:card-(.*0)?{number}"']
channels = ["{name}"]
"""


class Misbehaving(Noting):
    """Fails each message of a failing the first time."""

    def __init__(self, count: "Synchronized[int]") -> None:
        super().__init__(count)
        self.seen: set[str] = set()
        self.taken: set[str] = set()
        self.repeats = 0

    async def receive(self, request: Request) -> Response:
        """As the `failing` of the URL says; what is answered with 204 is taken."""
        await request.body()
        id, failing = request.headers["webhook-id"], request.query_params.get("failing", "")
        first = id not in self.seen
        self.seen.add(id)
        if failing == "endless" or not (failing and first):  # that one has accepted it, however long its answer is
            self.repeats += id in self.taken
            self.taken.add(id)
            self._count.value = len(self.taken)
        if not (failing and first):
            return Response(status_code=204)
        match failing:
            case "500" | "429":
                return Response(status_code=int(failing), headers={"retry-after": "1"} if failing == "429" else {})
            case "hang":
                await asyncio.sleep(30)
            case "drip":
                return StreamingResponse(_pieces(b".", 0.2), status_code=200)
            case "endless":
                return StreamingResponse(_pieces(b"." * 65_536, 0), headers={"content-length": str(10 * 2**30)})
        raise ConnectionResetError


async def _pieces(piece: bytes, pause: float) -> AsyncIterator[bytes]:
    while True:
        yield piece
        await asyncio.sleep(pause)


def _serve(orders: Connection, count: "Synchronized[int]") -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # uvicorn logs each connection that is reset
    receiver = Misbehaving(count)
    serve(receiver, orders, lambda: receiver.repeats)


@pytest.mark.skipif(ALERTS < 1, reason="none wanted")
def test_notifier_soak(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "broker", heap_mb=512) as broker, Recorder(_serve) as receiver:
        kafka = KafkaSettings(bootstrap=broker.bootstrap)
        ensure_topics(kafka, [*TOPICS.platform_topics(), *TOPICS.detector("one").contracts()])
        _route(tmp_path / "routing.toml", str(receiver.readiness))
        Alerts(kafka).send(ALERTS)
        begun, most, kills = time.monotonic(), 0, 0
        process = _start(kafka, tmp_path)
        came, changed = 0, time.monotonic()
        try:
            while receiver.count < ALERTS or _unpublished(tmp_path):
                # at the end it is left alone: what failed waits for its time, and a start takes some seconds
                left_alone = came > 0.99 * ALERTS
                time.sleep(0.5 if left_alone else random.uniform(*KILL_SECONDS))
                assert process.poll() is None, "it ended by itself"
                most = max(most, psutil.Process(process.pid).memory_info().rss)
                if receiver.count != came:
                    came, changed = receiver.count, time.monotonic()
                assert time.monotonic() < changed + QUIET_SECONDS, f"{ALERTS - came} alerts did not come out"
                if not left_alone:
                    process.kill()
                    process.wait()
                    kills += 1
                    process = _start(kafka, tmp_path)
        finally:
            process.kill()
            process.wait()
        seconds = time.monotonic() - begun
        size = sum(file.stat().st_size for file in tmp_path.glob("store.db*"))
        numbers, alerts = _published(kafka)
        assert alerts == ALERTS
        assert all(found == list(range(len(found))) for found in numbers)
        repeats = receiver.take()
        print(
            f"\n{ALERTS:,} alerts in {seconds:,.0f} s: {ALERTS / seconds:,.0f} a second, {kills} kills, "
            f"{most / 2**20:,.0f} MiB at most, the store {size / 2**20:,.0f} MiB; {repeats} came again behind a kill, "
            "under the `webhook-id` that they had"
        )


def _route(file: Path, url: str) -> None:
    text = "[rate_limit]\nalerts = 1000000000\n[route]\nchannels = ['well']\n" + CHANNEL.format(name="well", url=url)
    for number, failing in enumerate(FAILINGS):
        name = f"failing-{failing}"
        text += CHANNEL.format(name=name, url=f"{url}?failing={failing}") + ROUTE.format(name=name, number=number)
    file.write_text(text)


def _start(kafka: KafkaSettings, folder: Path) -> "subprocess.Popen[bytes]":
    variables = {
        "LOZENGE_KAFKA_BOOTSTRAP": kafka.bootstrap,
        "LOZENGE_DOWNSTREAM_STORE": f"sqlite:///{folder / 'store.db'}",
        "LOZENGE_DOWNSTREAM_ROUTING": str(folder / "routing.toml"),
        "LOZENGE_DOWNSTREAM_INSTANCE": "soak",
        "BENCH_SECRET": WEBHOOK_SECRET,
    }
    with (folder / "notifier.log").open("ab") as log:
        return subprocess.Popen([sys.executable, "-m", "lozenge_downstream"], env=os.environ | variables, stderr=log)


def _unpublished(folder: Path) -> int:
    with contextlib.closing(sqlite3.connect(folder / "store.db")) as store:
        (count,) = store.execute("SELECT count(*) FROM outbox WHERE published_at IS NULL").fetchone()
    return int(count)


def _published(kafka: KafkaSettings) -> tuple[list[list[int]], int]:
    """The numbers of the notifications in each partition, and how many alerts they hold."""
    codec = Codec.of("notification")
    consumer = KafkaConsumer(
        bootstrap_servers=kafka.bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    )
    partitions = [TopicPartition(TOPICS.notifications, p) for p in range(TOPICS.partitions)]
    consumer.assign(partitions)
    ends = consumer.end_offsets(partitions)
    numbers: dict[int, list[int]] = {partition.partition: [] for partition in partitions}
    alert_ids: set[str] = set()
    while any(consumer.position(partition) < ends[partition] for partition in partitions):
        for batch in consumer.poll(500).values():
            for record in batch:
                notification = codec.decode(record.value)
                numbers[record.partition].append(notification["seq"])
                alert_ids.update(notification["alert_ids"])
    consumer.close()
    return list(numbers.values()), len(alert_ids)

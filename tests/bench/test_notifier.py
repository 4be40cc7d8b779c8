"""The notifier by itself: how long from alert to webhook, and how many a second through a receiver that takes 5 ms.

`make bench-pytest ARGS="-k notifier"`: prints a table. Throughput is compared with a serial loop, as a service would be
written that has no notifier: read an alert, post it, commit. Nothing is asserted but that what went in came out.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from confluent_kafka import Consumer, Producer
from standardwebhooks import Webhook as Signer
from starlette.requests import Request
from starlette.responses import Response

from lozenge.contracts import ids
from lozenge.contracts.avro import Codec
from lozenge.contracts.partitioner import partition_of
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge_deploy.local.embedded_broker import EmbeddedBroker
from tests.bench.harness.consumer import Arrival, Recorder
from tests.bench.harness.platform import TOPICS
from tests.bench.harness.statistics import quantile
from tests.bench.harness.system import WEBHOOK_SECRET
from tests.bench.harness.webhooks import Noting, serve

RATES = {10: 30, 300: 20, 1_000: 20}
"""Alerts a second, and for how many seconds."""
BATCH, SERIAL = 20_000, 2_000
RECEIVER_SECONDS = 0.005
DEADLINE_SECONDS = 300.0
ROUTING = """
[route]
channels = ["bench"]
[channels.bench]
type = "webhook"
url = "{url}"
networks = ["127.0.0.0/8"]
secret = {{ env = "BENCH_SECRET" }}
concurrency = 64
[rate_limit]
alerts = 100000000
"""


class Slow(Noting):
    """Answers after five milliseconds."""

    async def receive(self, request: Request) -> Response:
        await asyncio.sleep(RECEIVER_SECONDS)
        return await super().receive(request)


class Receiver(Recorder):
    """A measuring receiver at `url`."""

    def __init__(self, kind: type[Noting]) -> None:
        super().__init__(_serve, kind)

    @property
    def url(self) -> str:
        return str(self.readiness)


def _serve(kind: type[Noting], orders: Connection, count: "Synchronized[int]") -> None:
    receiver = kind(count)
    serve(receiver, orders, receiver.take)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaSettings]:
    """A broker without any alerts yet."""
    with EmbeddedBroker(tmp_path_factory.mktemp("broker")) as broker:
        settings = KafkaSettings(bootstrap=broker.bootstrap)
        ensure_topics(settings, [*TOPICS.platform_topics(), *TOPICS.detector("one").contracts()])
        yield settings


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The notifier's, for all tests: its numbers continue in the topic of notifications."""
    return tmp_path_factory.mktemp("notifier")


@contextmanager
def notifier(kafka: KafkaSettings, folder: Path, url: str) -> Iterator[None]:
    (folder / "routing.toml").write_text(ROUTING.format(url=url))
    variables = {
        "LOZENGE_KAFKA_BOOTSTRAP": kafka.bootstrap,
        "LOZENGE_DOWNSTREAM_STORE": f"sqlite:///{folder / 'store.db'}",
        "LOZENGE_DOWNSTREAM_ROUTING": str(folder / "routing.toml"),
        "BENCH_SECRET": WEBHOOK_SECRET,
    }
    process = subprocess.Popen([sys.executable, "-m", "lozenge_downstream"], env=os.environ | variables)
    try:
        yield
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


class Alerts:
    """Writes alerts with rising numbers; each is raised at the moment at which it was meant to be."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._producer = Producer(kafka.client(linger_ms=0))
        self._codec = Codec.of("alert")
        self.count = 0

    def send(self, number: int, rate: float = 0.0) -> None:
        """`number` of them, `rate` a second; without a rate all at once."""
        begun = time.time()
        for n in range(number):
            meant = begun + n / rate if rate else time.time()
            if (wait := meant - time.time()) > 0:
                time.sleep(wait)
            self._write(meant)
            self._producer.poll(0)
        assert self._producer.flush(60) == 0

    def _write(self, meant: float) -> None:
        card = f"card-{self.count % 1000}"
        alert: dict[str, Any] = {
            "alert_id": ids.alert_id("one", "card", card, str(self.count)),
            "detector": "one",
            "release": "r1",
            "settings_digest": "d1",
            "entity": {"type": "card", "id": card},
            "severity": "high",
            "score": 0.5,
            "title": "Bench",
            "reason": "300.00 EUR is above 220.00",
            "evidence": {"event_ids": ["e1"], "values": {"limit": "220.00"}},
            "event_time": datetime.fromtimestamp(meant, UTC),
            "detected_at": datetime.fromtimestamp(meant, UTC),
            "labels": {},
        }
        self.count += 1
        while True:
            try:
                partition = partition_of(card.encode(), TOPICS.partitions)
                value = self._codec.encode(alert)
                self._producer.produce(TOPICS.detector("one").alerts, value, card.encode(), partition)
                return
            except BufferError:
                self._producer.poll(0.1)


@pytest.fixture(scope="module")
def alerts(kafka: KafkaSettings) -> Alerts:
    return Alerts(kafka)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "what went in did not come out"
        time.sleep(0.01)


def latencies(arrivals: list[Arrival]) -> list[float]:
    """From the moment an alert was raised until its webhook was there, in ms."""
    found = []
    for arrival in arrivals:
        (alert,) = msgspec.json.decode(arrival.value)["data"]["alerts"]
        found.append(arrival.came_ns / 1e6 - datetime.fromisoformat(alert["event_time"]).timestamp() * 1000)
    return sorted(found)


def test_notifier_latency(kafka: KafkaSettings, folder: Path, alerts: Alerts) -> None:
    with Receiver(Noting) as receiver, notifier(kafka, folder, receiver.url):
        alerts.send(200)
        wait_for(lambda: receiver.count == 200)
        receiver.take()
        for rate, seconds in RATES.items():
            alerts.send(rate * seconds, rate)
            wait_for(lambda: receiver.count == rate * seconds)  # noqa: B023
            took = latencies(receiver.take())
            print(f"\n{rate:>6,}/s  p50 {quantile(took, 0.5):.1f} ms  p99 {quantile(took, 0.99):.1f} ms")


def test_notifier_throughput_compared_with_a_serial_loop(kafka: KafkaSettings, folder: Path, alerts: Alerts) -> None:
    with Receiver(Slow) as receiver:
        alerts.send(BATCH)
        begun = time.monotonic()
        with notifier(kafka, folder, receiver.url):
            wait_for(lambda: receiver.count > 100)
            begun, before = time.monotonic(), receiver.count
            wait_for(lambda: receiver.count == BATCH)
            ours = (BATCH - before) / (time.monotonic() - begun)
        receiver.take()
        serial = SERIAL / _serial_loop(kafka, receiver.url)
        print(f"\nours {ours:,.0f}/s, a serial loop {serial:,.0f}/s: {ours / serial:.1f}")


def _serial_loop(kafka: KafkaSettings, url: str) -> float:
    consumer = Consumer(kafka.client(group_id="serial", auto_offset_reset="earliest", enable_auto_commit=False))
    consumer.subscribe([TOPICS.detector("one").alerts])
    codec, signer = Codec.of("alert"), Signer(WEBHOOK_SECRET)
    done, begun = 0, 0.0
    with httpx2.Client(trust_env=False) as client:
        while done < SERIAL:
            message = consumer.poll(1.0)
            if message is None:
                continue
            begun = begun or time.monotonic()
            alert = codec.decode(message.value())
            now, body = datetime.now(UTC), msgspec.json.encode(alert).decode()
            headers = {
                "webhook-id": alert["alert_id"],
                "webhook-timestamp": str(int(now.timestamp())),
                "webhook-signature": signer.sign(alert["alert_id"], now, body),
            }
            assert client.post(url, content=body.encode(), headers=headers).status_code == 204
            consumer.commit(message=message, asynchronous=False)
            done += 1
    consumer.close()
    return time.monotonic() - begun

"""`python -m lozenge_deploy.exporter [PORT]`: the jobs' metrics for Prometheus, at `/metrics`.

It listens on loopback, or where `LOZENGE_EXPORTER_BIND` says. Jobs publish snapshots to the
compacted topic `lozenge.metrics.v1`; this shows the last one of every instance, with the labels `app`,
`instance` and `release`. An instance that was silent for `FORGET_SECONDS` is gone: Prometheus then sees
its series end instead of a number that never moves.
"""

import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from lozenge import topics
from lozenge.admin import check_topics
from lozenge.errors import LozengeError, UsageError
from lozenge.kafka import KafkaSettings

LOOPBACK = "127.0.0.1"
PORT = 9464
FORGET_SECONDS = 60.0
_POLL_SECONDS = 1.0

Snapshot = Mapping[str, Any]


class Snapshots(Collector):
    """The last snapshot by instance; Prometheus asks from its own thread."""

    def __init__(self) -> None:
        self._last: dict[str, Snapshot] = {}

    def take(self, key: str, snapshot: Snapshot) -> None:
        """Replaces what was known of one instance."""
        self._last = self._last | {key: snapshot}

    def collect(self) -> Iterable[Metric]:
        """Every family with the samples of all instances that still report."""
        families: dict[str, Metric] = {}
        for snapshot in self._last.values():
            if time.time() - snapshot["time"] > FORGET_SECONDS:
                continue
            labels = {name: snapshot[name] for name in ("app", "instance", "release")}
            for text, value in snapshot["samples"].items():
                name, own = parse(text)
                family = families.setdefault(name, Metric(name, f"{name} of a Lozenge job", "untyped"))
                family.add_sample(name, labels | own, value)
        return families.values()


def parse(sample: str) -> tuple[str, dict[str, str]]:
    """The name and labels in a snapshot's `name{label=value,...}`."""
    name, _, rest = sample.partition("{")
    return name, dict(re.findall(r"([a-z_]+)=([^,}]*)", rest))


def snapshots(kafka: KafkaSettings) -> Iterator[tuple[str, Snapshot]]:
    """Every snapshot from the beginning of the topic on, without end."""
    consumer = Consumer(kafka.client(group_id="exporter", enable_auto_commit=False))
    consumer.assign([TopicPartition(topics.METRICS, 0, 0)])
    while True:
        message = consumer.poll(_POLL_SECONDS)
        if message is not None and message.error() is None:
            yield (message.key() or b"").decode(), json.loads(message.value() or b"{}")


def serve(registry: CollectorRegistry, address: str, port: str = str(PORT)) -> None:
    """Answers Prometheus from a thread of its own; raises UsageError where it cannot listen."""
    try:
        start_http_server(int(port), addr=address, registry=registry)
    except (OSError, OverflowError, ValueError) as error:
        raise UsageError(
            f"serving metrics at {address}, port {port}: {error}",
            hint="the port is the first argument and must be free; the address comes from LOZENGE_EXPORTER_BIND",
        ) from error


def main() -> int:
    """Serves until it is killed; the exit code if it cannot."""
    seen, registry = Snapshots(), CollectorRegistry()
    registry.register(seen)
    try:
        kafka = KafkaSettings.load()
        serve(registry, os.environ.get("LOZENGE_EXPORTER_BIND", LOOPBACK), *sys.argv[1:2])
        check_topics(kafka, [t for t in topics.platform_topics() if t.name == topics.METRICS])
    except LozengeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    for key, snapshot in snapshots(kafka):
        seen.take(key, snapshot)
    return 0


if __name__ == "__main__":
    sys.exit(main())

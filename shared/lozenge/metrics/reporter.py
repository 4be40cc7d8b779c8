"""Publishes the snapshots of an app's metrics to Kafka.

Snapshots go to a compacted topic, keyed by app and instance, so a reader has the last values of every instance.
A broker that does not answer costs snapshots, never the job's progress.
"""

import json
import threading
from types import TracebackType

from confluent_kafka import KafkaException, Producer

from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.app_metrics import AppMetrics
from lozenge.process.usage import CostMeter, Meter


class Reporter:
    """Publishes a snapshot every `interval` seconds while it is entered, once at the end, and on request.

    `meter` measures the app's cost: by default that of this process tree.
    """

    def __init__(
        self, metrics: AppMetrics, kafka: KafkaSettings, interval: float = 1.0, meter: CostMeter | None = None
    ) -> None:
        self._metrics, self._interval, self._meter = metrics, interval, meter or Meter()
        self._topic = kafka.topics.metrics
        # A small queue that drops when the broker is away: metrics never hold memory or the job.
        self._producer = Producer(kafka.client(queue_buffering_max_messages=100, message_timeout_ms=5000))
        self._stop = threading.Event()
        self._publishing = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)

    def __enter__(self) -> "Reporter":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(self._interval + 1)
        self.publish(ended=True)
        self._producer.flush(1)

    def _run(self) -> None:
        while not self._stop.wait(self._interval):
            self.publish()

    def publish(self, *, ended: bool = False) -> None:
        """Publishes one now, from any thread; returns before the broker has it."""
        key = f"{self._metrics.app}/{self._metrics.instance}"
        with self._publishing:
            self._metrics.cost(self._meter.read())
            snapshot = self._metrics.snapshot(ended=ended)
            try:
                self._producer.produce(self._topic, json.dumps(snapshot).encode(), key.encode())
                self._producer.poll(0)
            except (BufferError, KafkaException):
                pass  # the next snapshot carries the same totals

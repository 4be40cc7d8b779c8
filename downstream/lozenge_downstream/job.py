"""The notifier's process: read, decide, record; beside it one thread publishes and one delivers.

1. Take over the store (an older owner is fenced).
2. Read a batch of alerts, decide it, record it: one SQL transaction.
3. Wake relay and deliverer, which work from the store alone.
"""

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime

from lozenge import registry, topics
from lozenge.admin import check_topics
from lozenge.kafka import KafkaSettings
from lozenge.logs import logger
from lozenge.metrics import Metrics, Reporter
from lozenge.schemas import newest
from lozenge_downstream.config import Routing, Settings
from lozenge_downstream.deliver import Deliverer
from lozenge_downstream.model import Outcome, Record
from lozenge_downstream.pipeline import APP, DEAD_LETTERS, Pipeline
from lozenge_downstream.reader import Reader
from lozenge_downstream.relay import Relay
from lozenge_downstream.store import Store

BATCH = 500
FORGET_SECONDS = 3600.0
DAY_SECONDS = 86_400.0


class Notifier:
    """One notifier; `run` returns when `stop` is set and raises what ended any of its loops."""

    def __init__(self, settings: Settings, kafka: KafkaSettings, routing: Routing) -> None:
        check_topics(kafka, [t for t in topics.platform_topics() if t.name in (topics.NOTIFICATIONS, DEAD_LETTERS)])
        registry.announce(kafka, [newest("notification")])
        self._kafka = kafka
        self._keep_seconds = settings.keep_days * DAY_SECONDS
        self._forget_at = 0.0
        self._metrics = Metrics(APP)
        self._store = Store(settings.store.get_secret_value())
        self._pipeline = Pipeline(routing.routes, learn=lambda: registry.learn(kafka, "alert"))
        self._reader = Reader(kafka, self._store)
        self._relay = Relay(kafka, self._store, self._metrics, shard=settings.instance)
        self._deliverer = Deliverer(self._store, routing.webhooks, self._metrics)
        for name, count in self._store.orphans(routing.webhooks).items():
            logger().warning("deliveries wait for a webhook that is not configured", webhook=name, deliveries=count)

    def run(self, stop: threading.Event) -> None:
        """Runs until `stop` is set; all that was read is then recorded, the rest waits in the store."""
        with Reporter(self._metrics, self._kafka), ThreadPoolExecutor(2) as threads:
            loops: list[Future[None]] = [threads.submit(part.run, stop) for part in (self._relay, self._deliverer)]
            for loop in loops:
                loop.add_done_callback(lambda ended: stop.set() if ended.exception() else None)
            try:
                while not stop.is_set():
                    self._step()
            finally:
                stop.set()
                self._wake()
                self._reader.close()
        self._store.close()
        for loop in loops:
            loop.result()

    def _step(self) -> None:
        records = self._reader.read(BATCH)
        if records:
            self._decide(records)
            self._wake()
        self._reader.commit()
        self._metrics.lag(self._reader.lag())
        if time.monotonic() >= self._forget_at:
            self._forget_at = time.monotonic() + FORGET_SECONDS
            with self._store.transaction() as batch:
                batch.forget(time.time() - self._keep_seconds)

    def _decide(self, records: list[Record]) -> None:
        started = time.monotonic()
        with self._store.transaction() as batch:
            decided = self._pipeline.run(records, seen=batch.seen, number=batch.number, now=datetime.now(UTC))
            batch.record(decided)
        self._metrics.batch(time.monotonic() - started)
        self._metrics.records(len(records))
        self._metrics.dead_letters(sum(d.outcome is Outcome.DEAD_LETTER for d in decided), "decode")

    def _wake(self) -> None:
        self._relay.wake()
        self._deliverer.wake()

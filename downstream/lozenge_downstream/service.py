"""The notifier's process: read, decide, record; beside it one thread publishes and one delivers.

1. Read a batch of alerts, decide it, record it with its offsets: one SQL transaction.
2. Look at the cases whose time has come: another one.
3. Wake relay and deliverer, which work from the store alone.
"""

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

from lozenge.contracts.schemas import newest
from lozenge.kafka import schema_topic
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import check_topics
from lozenge.metrics.app_metrics import Metrics
from lozenge.metrics.reporter import Reporter
from lozenge.process.logging import logger
from lozenge_downstream.api import api
from lozenge_downstream.api.feedback_records import Links
from lozenge_downstream.api.server import ApiServer
from lozenge_downstream.delivery.dispatcher import Dispatcher
from lozenge_downstream.delivery.outbox_relay import OutboxRelay, outputs
from lozenge_downstream.ingest.alert_consumer import AlertConsumer
from lozenge_downstream.lease_holder import RELAY, LeaseHolder, lane
from lozenge_downstream.model import APP, Outcome, Record
from lozenge_downstream.pipeline.mute import rule_of
from lozenge_downstream.pipeline.pipeline import Pipeline
from lozenge_downstream.routing.config_reload import ConfigReload
from lozenge_downstream.settings import Settings
from lozenge_downstream.store import Retention, Store
from lozenge_downstream.timing import Timing

BATCH = 500
FORGET_SECONDS, LISTEN_SECONDS, COUNT_SECONDS = 3600.0, 60.0, 10.0
DAY_SECONDS = 86_400.0


class Notifier:
    """One notifier; `run` returns when `stop` is set and raises what ended any of its loops."""

    def __init__(self, settings: Settings, kafka: KafkaSettings, timing: Timing) -> None:
        self._routing = ConfigReload(settings.routing)
        check_topics(kafka, [t for t in kafka.topics.platform_topics() if t.name in outputs(kafka.topics)])
        schema_topic.announce(kafka, [newest("notification"), newest("feedback")])
        self._kafka = kafka
        self._keep_seconds = settings.keep_days * DAY_SECONDS
        self._forget_at = self._count_at = 0.0
        self._forgetting: Retention | None = None
        self._listen_at = time.monotonic() + LISTEN_SECONDS  # what came while nobody read is silence until it is read
        self._metrics = Metrics(APP)
        self._store = Store(settings.store.get_secret_value())
        self._leases = LeaseHolder(self._store, settings.instance, timing.lease_seconds)
        links = Links(settings.link_secret.get_secret_value(), settings.public_url) if settings.link_secret else None
        link = links.make if links and settings.public_url else None
        self._pipeline = Pipeline(self._routing.now, kafka.topics, lambda: schema_topic.learn(kafka, "alert"), link)
        self._reader = AlertConsumer(kafka, self._store, settings.instance, timing.session_seconds)
        self._relay = OutboxRelay(kafka, self._store, self._metrics, may=lambda: self._leases.holds(RELAY))
        self._deliverer = Dispatcher(
            self._store, kafka.topics, lambda: self._routing.now.channels, self._leases.holds, self._metrics
        )
        token = settings.token.get_secret_value() if settings.token else ""
        served = api(self._store, self._pipeline, self._wake, token, links)
        self._serving = ApiServer(served, settings.bind)
        with self._store.transaction(alone=True) as t:
            self._pipeline.catch_up(t.cases.inhibiting(), t)  # the file may have changed while nobody ran
        self._tell_orphans()

    def run(self, stop: threading.Event) -> None:
        """Runs until `stop` is set; all that was read is then recorded, the rest waits in the store."""
        with Reporter(self._metrics, self._kafka), self._serving, ThreadPoolExecutor(2) as threads:
            self._renew()
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
        self._leases.give_up()
        self._store.close()
        for loop in loops:
            loop.result()

    def _step(self) -> None:
        records = self._reader.read(BATCH)
        if records:
            self._decide(records)
            self._wake()
        if self._look():
            self._wake()
        self._reader.commit()
        self._metrics.lag(self._reader.lag())
        self._metrics.routing(not self._routing.problem)
        self._renew()
        if self._routing.look():
            known = {rule_of(rule) for rule in self._pipeline.routing.inhibit}
            self._pipeline.routing = self._routing.now
            with self._store.transaction(alone=True) as t:
                self._pipeline.catch_up(known, t)
            self._tell_orphans()
        if time.monotonic() >= self._listen_at and not self._reader.lag():
            self._listen_at = time.monotonic() + LISTEN_SECONDS
            with self._store.transaction(alone=True) as t:
                self._pipeline.listen(t)
        if time.monotonic() >= self._count_at:
            self._count_at = time.monotonic() + COUNT_SECONDS
            self._count()
        if time.monotonic() >= self._forget_at:
            self._forget()

    def _decide(self, records: list[Record]) -> None:
        started = time.monotonic()
        decoded = self._pipeline.decode(records)
        with self._store.transaction(alone=True) as t:
            arrivals = self._pipeline.arrive(decoded, t)
            self._reader.record(records, t)
        self._metrics.batch(time.monotonic() - started)
        self._metrics.records(len(records))
        self._metrics.dead_letters(sum(a.outcome is Outcome.DEAD_LETTER for a in arrivals), "decode")

    def _look(self) -> bool:
        with self._store.reading() as t:
            if not t.cases.are_due():
                return False
        with self._store.transaction(alone=True) as t:
            return self._pipeline.look(t, BATCH) > 0

    def _count(self) -> None:
        """What all notifiers of this store share is told by one."""
        if not self._leases.holds(RELAY):
            self._metrics.notifications({}, {}, {})
            return
        with self._store.reading() as t:
            self._metrics.notifications(t.deliveries.orphans([]), t.arrivals.parked(), t.verdicts.precision())

    def _forget(self) -> None:
        """One step; what is read and what is due comes before the next one."""
        with self._store.transaction(alone=True) as t:  # else what is brought back meanwhile could lose its half
            self._forgetting = self._forgetting or Retention(t.now - self._keep_seconds)
            if not t.forget(self._forgetting):
                self._forgetting = None
                self._forget_at = time.monotonic() + FORGET_SECONDS

    def _renew(self) -> None:
        self._leases.renew([RELAY, *(lane(name) for name in self._routing.now.channels)])

    def _tell_orphans(self) -> None:
        with self._store.reading() as t:
            waiting = t.deliveries.orphans(self._routing.now.channels)
        for name, count in waiting.items():
            logger().warning("deliveries wait for a channel that is not configured", channel=name, deliveries=count)

    def _wake(self) -> None:
        self._relay.wake()
        self._deliverer.wake()

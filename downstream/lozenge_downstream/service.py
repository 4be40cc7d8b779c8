"""The notifier's process: it reads, processes and records alerts, while one thread publishes and one delivers.

1. Read a batch of alerts, process it, and record it with its offsets: one SQL transaction.
2. Evaluate the cases that are due: another one.
3. Wake the relay and the dispatcher, which work from the store only.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from lozenge.apps import DOWNSTREAM
from lozenge.contracts.schemas import newest
from lozenge.kafka import schema_topic
from lozenge.kafka.schema_registry import settle_ids
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import check_topics
from lozenge.metrics.app_metrics import NotifierMetrics
from lozenge.metrics.reporter import Reporter
from lozenge_downstream.api import api
from lozenge_downstream.api.feedback_records import FeedbackLinks
from lozenge_downstream.api.server import ApiServer
from lozenge_downstream.delivery.dispatcher import Dispatcher
from lozenge_downstream.delivery.outbox_relay import OutboxRelay, outputs
from lozenge_downstream.ingest.alert_consumer import AlertConsumer
from lozenge_downstream.lease_holder import RELAY, LeaseHolder, channel_lease
from lozenge_downstream.model import Classification, ReceivedRecord
from lozenge_downstream.periodic_tasks import PeriodicTasks
from lozenge_downstream.pipeline.pipeline import Pipeline
from lozenge_downstream.routing.config_reload import ConfigReload
from lozenge_downstream.routing_watch import RoutingWatch
from lozenge_downstream.settings import NotifierSettings
from lozenge_downstream.store import Store
from lozenge_downstream.timing import NotifierTiming

BATCH = 500
DAY_SECONDS = 86_400.0


class Notifier:
    """One notifier. `run` returns once a stop is requested, and raises the error that ended any of its loops."""

    def __init__(self, settings: NotifierSettings, kafka: KafkaSettings, timing: NotifierTiming) -> None:
        self._store = Store(settings.store.get_secret_value())
        with self._store.reading() as t:
            used = t.routing_versions.used(str(settings.routing))
        self._routing = ConfigReload(settings.routing, used.text if used else None)
        check_topics(kafka, [t for t in kafka.topics.platform_topics() if t.name in outputs(kafka.topics)])
        settle_ids(kafka, ["notification", "feedback"])
        self._kafka = kafka
        self._metrics = NotifierMetrics(DOWNSTREAM)
        self._leases = LeaseHolder(self._store, settings.instance, timing.lease_seconds)
        secret = settings.link_secret
        links = FeedbackLinks(secret.get_secret_value(), settings.public_url) if secret else None
        link = links.make if links and settings.public_url else None
        self._pipeline = Pipeline(
            self._routing.current, kafka.topics, lambda: schema_topic.learn(kafka, newest("alert")), link
        )
        self._consumer = AlertConsumer(kafka, self._store, settings.instance, timing.session_seconds)
        self._relay = OutboxRelay(kafka, self._store, self._metrics, may=lambda: self._leases.holds(RELAY))
        self._dispatcher = Dispatcher(
            self._store, kafka.topics, lambda: self._routing.current.channels, self._leases.holds, self._metrics
        )
        self._periodic = PeriodicTasks(
            self._store,
            self._pipeline,
            self._leases,
            self._metrics,
            keep_seconds=settings.keep_days * DAY_SECONDS,
            started=time.monotonic(),
        )
        token = settings.token.get_secret_value() if settings.token else ""
        self._api = ApiServer(api(self._store, self._pipeline, self._wake, token, links), settings.bind)
        self._watch = RoutingWatch(self._routing, self._store, self._pipeline, self._wake)
        self._watch.start()

    def run(self, stop: Callable[[], bool]) -> None:
        """Runs until `stop`. Everything that was read is recorded then, the rest waits in the store."""
        ended = threading.Event()
        with Reporter(self._metrics, self._kafka), self._api, ThreadPoolExecutor(2) as threads:
            self._renew_leases()
            loops: list[Future[None]] = [threads.submit(part.run, ended) for part in (self._relay, self._dispatcher)]
            for loop in loops:
                loop.add_done_callback(lambda _: ended.set())
            try:
                while not (stop() or ended.is_set()):
                    self._step()
            finally:
                ended.set()
                self._wake()
                self._consumer.close()
        self._leases.give_up()
        self._store.close()
        for loop in loops:
            loop.result()

    def _step(self) -> None:
        records = self._consumer.read(BATCH)
        if records:
            self._process(records)
            self._wake()
        if self._evaluate_due():
            self._wake()
        self._consumer.commit()
        self._metrics.lag(self._consumer.lag())
        self._metrics.routing(not self._routing.problem)
        self._renew_leases()
        self._watch.step()
        self._periodic.run_due(time.monotonic(), self._consumer.lag)

    def _process(self, records: list[ReceivedRecord]) -> None:
        started = time.monotonic()
        decoded = self._pipeline.decode(records)
        with self._store.transaction(exclusive=True) as t:
            received = self._pipeline.receive(decoded, t)
            self._consumer.record(records, t)
        self._metrics.batch(time.monotonic() - started)
        self._metrics.records(len(records))
        self._metrics.dead_letters(sum(r.outcome is Classification.DEAD_LETTER for r in received), "decode")

    def _evaluate_due(self) -> bool:
        with self._store.reading() as t:
            if not t.cases.are_due():
                return False
        with self._store.transaction(exclusive=True) as t:
            return self._pipeline.evaluate_due(t, BATCH) > 0

    def _renew_leases(self) -> None:
        self._leases.renew([RELAY, *(channel_lease(name) for name in self._routing.current.channels)])

    def _wake(self) -> None:
        self._relay.wake()
        self._dispatcher.wake()

"""Detectors of three kinds, the events that they process, and jobs of them under a test's orders."""

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lozenge import Fold, Settings, Tables, alert, fold
from lozenge.contracts.avro import Codec
from lozenge.detector.loader import LoadedDetector
from lozenge.job.lifecycle.job_loop import JobLoop
from lozenge.job.lifecycle.job_parts import Happened
from lozenge.job.lifecycle.job_state import JobAction
from lozenge.job.settings import JobSettings
from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.app_metrics import JobMetrics
from lozenge.protocol.job_spec import JobSpec
from lozenge.protocol.job_status import JobPhase, JobStatus, read_job_status
from tests.integration.harness import Crash, Running, alerts, event, send, wait_for
from tests.integration.job.sparkless import Count, each, parts_of
from tests.merged_streams import SIGN_IN, sign_in


class Above(Settings):
    limit: float = 100.0


def above(events: DataFrame, settings: Above, tables: Tables) -> DataFrame:
    if settings.limit < 0:
        raise ValueError("no limit is negative")
    return events.where(F.col("amount") > settings.limit).select(*alert(reason=F.col("event_id")))


def counting(events: DataFrame, settings: Above, tables: Tables) -> Fold[Count]:
    return fold(events, by="card_id", state=Count, step=each, expires=timedelta(days=1))


def minutes(events: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
    """One alert for every card and minute with three events."""
    counted = events.groupBy(F.window("event_time", "1 minute"), "card_id").agg(
        F.count("*").alias("n"), F.max("event_time").alias("last")
    )
    return counted.where(F.col("n") >= 3).select(
        *alert(reason=F.lit("three"), entity=F.col("card_id"), at=F.col("last"), window=F.col("window"), band="3")
    )


KINDS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "rule": (above, {}),
    "stateful": (counting, {}),
    "aggregate": (minutes, {"lateness": "10m", "window": "1m"}),
}
CARDS = 6
SIGN_INS = Codec(SIGN_IN.event_schema)


class Traffic:
    """Twenty times a second one event of every card, five seconds apart in its own time.

    For a detector of several streams each second one is a sign-in.
    """

    def __init__(self, kafka: KafkaSettings, loaded: LoadedDetector) -> None:
        self._kafka, self._cards, self._stop = kafka, loaded.name, threading.Event()
        self._stream = loaded.stream
        self.rounds = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> "Traffic":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> int:
        """Stops it; returns the number of events sent per card."""
        self._stop.set()
        self._thread.join()
        return self.rounds

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            later = timedelta(seconds=5 * self.rounds)
            ids = range(self.rounds * CARDS, (self.rounds + 1) * CARDS)
            if self._stream.members and self.rounds % 2:
                attempts = [sign_in(i, later, card_id=f"{self._cards}{i % CARDS}") for i in ids]
                send(self._kafka, attempts, SIGN_INS, self._stream)
            else:
                payments = [event(i, f"{self._cards}{i % CARDS}", "150.00", later) for i in ids]
                send(self._kafka, payments, stream=self._stream)
            self.rounds += 1


class Job:
    """A runner with a folder of its own, in a thread; without a session its query is Python, see `sparkless`."""

    def __init__(
        self,
        loaded: LoadedDetector,
        kafka: KafkaSettings,
        spark: SparkSession | None,
        folder: Path,
        make: type[JobLoop] = JobLoop,
        **first: Any,
    ) -> None:
        settings = JobSettings(folder=folder, release=folder.name, state=first.pop("state", "keep"))
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.order(**first)
        session = spark.newSession() if spark is not None else None
        parts = parts_of(loaded, settings, kafka, session, JobMetrics(loaded.name))
        self.run = Running(make(parts))

    def order(self, **order: Any) -> None:
        JobSpec(**order).write(self.folder)

    @property
    def report(self) -> JobStatus:
        report = read_job_status(self.folder)
        assert report is not None
        return report

    def wait(self, phase: JobPhase) -> None:
        def there() -> bool:
            if self.run.error:
                raise self.run.error
            return (report := read_job_status(self.folder)) is not None and report.phase is phase

        wait_for(there, f"{self.folder.name} to be {phase}")


class Mortal(JobLoop):
    """Dies in its next batch, at the step that `dies` names."""

    dies = ""

    def _perform(self, action: JobAction, happened: Happened) -> Happened | None:
        def crash(*_: object) -> None:
            raise Crash("killed here")

        if action is not JobAction.ACCEPT:
            return super()._perform(action, happened)
        if self.dies == "before its transaction":
            crash()
        if self.dies == "inside its transaction":
            for writer, _ in self.parts.claims.writers.each():
                writer._retrying = crash  # type: ignore[method-assign,assignment] # what commits it
        following = super()._perform(action, happened)
        if self.dies == "after its transaction":
            crash()
        return following


def await_each_once(kafka: KafkaSettings, loaded: LoadedDetector, kind: str, sent: int, last: Job) -> None:
    """Waits until `last` has emitted all alerts of `sent` rounds, ends it, and checks that no alert is double."""
    expected = sent * CARDS if kind != "aggregate" else (sent // 12) * CARDS
    wait_for(lambda: len(alerts(kafka, loaded.name)) >= expected, f"{expected} alerts")
    last.run.stop()
    emitted = alerts(kafka, loaded.name)
    assert len(emitted) in range(expected, expected + (CARDS + 1 if kind == "aggregate" else 1))
    assert len({a["alert_id"] for a in emitted}) == len(emitted)
    if kind == "stateful":
        assert {a["reason"] for a in emitted} == {
            f"{loaded.name}{c} {n}" for c in range(CARDS) for n in range(1, sent + 1)
        }


def until_alert(kafka: KafkaSettings, detector: str, reason: str, numbers: Iterator[int], **fields: Any) -> None:
    """Sends events of these `numbers` until an alert has the reason: a new version of a table takes a moment."""

    def seen() -> bool:
        send(kafka, [event(next(numbers), **fields)])
        return any(alert["reason"] == reason for alert in alerts(kafka, detector))

    wait_for(seen, f"an alert with {reason}")

"""One job that replaces another under traffic, and jobs that die at a step of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lozenge import Detector
from lozenge.detector.loader import LoadedDetector
from lozenge.errors import Fenced
from lozenge.job.lifecycle.job_loop import JobLoop
from lozenge.job.lifecycle.job_parts import Happened, JobParts
from lozenge.job.lifecycle.job_state import JobAction, JobEvent
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.job_status import JobPhase
from tests.integration.harness import Crash, committed, event, group_offsets, new_detector, send, wait_for
from tests.integration.job.traffic import KINDS, Above, Job, Mortal, Traffic, await_each_once
from tests.streams import event_codec


def a_detector(kind: str, kafka: KafkaSettings, folder: Path) -> LoadedDetector:
    """A detector of this kind, under a name of its own."""
    detect, declared = KINDS[kind]
    return new_detector(kafka, Detector(detect, settings=Above), folder, kind=kind, **declared)


def with_standby(
    loaded: LoadedDetector,
    by: LoadedDetector,
    kafka: KafkaSettings,
    spark: SparkSession | None,
    folder: Path,
    old: type[JobLoop] = JobLoop,
    **standby: Any,
) -> tuple[Job, Job]:
    """Under traffic: r1, which is live and has had a batch, and r2, which is ready to replace it."""
    before = Job(loaded, kafka, spark, folder / "r1", make=old, generation=1)
    before.wait(JobPhase.LIVE)
    wait_for(lambda: before.report.records > 0, "the first batch of r1")
    after = Job(by, kafka, spark, folder / "r2", generation=2, standby=True, **standby)
    after.wait(JobPhase.READY)
    return before, after


@contextmanager
def under_replacement(
    loaded: LoadedDetector,
    by: LoadedDetector,
    kafka: KafkaSettings,
    spark: SparkSession | None,
    folder: Path,
    **standby: Any,
) -> Iterator[tuple[Traffic, Job]]:
    """Under traffic r1 runs, r2 is a standby and cuts over; r1 must have been fenced. Cards begin with the name."""
    with Traffic(kafka, loaded) as traffic:
        old, new = with_standby(loaded, by, kafka, spark, folder, **standby)
        assert group_offsets(kafka, loaded.name)[0][1].startswith("1/")
        new.order(generation=2)
        new.wait(JobPhase.LIVE)
        old.run.join()
        assert isinstance(old.run.error, Fenced)
        minute = traffic.rounds + 12  # even an aggregate emits something after it
        wait_for(lambda: traffic.rounds > minute, "a minute of events under r2")
        yield traffic, new
    new.run.stop()
    assert new.run.error is None


class DiesBeforeClaim(JobLoop):
    """Asked to cut over, it dies before it has done anything."""

    def _perform(self, action: JobAction, happened: Happened) -> Happened | None:
        if action is JobAction.CUT_OVER:
            raise Crash("killed here")
        return super()._perform(action, happened)


class DiesAfterClaim(JobLoop):
    """It has fenced the replaced job, and dies before it has published anything."""

    def __init__(self, parts: JobParts) -> None:
        super().__init__(parts)

        def crash() -> None:
            raise Crash("killed here")

        self._starts._start_backfill = crash  # type: ignore[method-assign] # the first step after the claim


class DiesAfterFirstTransaction(JobLoop):
    """It has published what it buffered, and dies before its next step."""

    def _perform(self, action: JobAction, happened: Happened) -> Happened | None:
        following = super()._perform(action, happened)
        if following is not None and following.event is JobEvent.BUFFER_PUBLISHED:
            raise Crash("killed here")
        return following


class MeetsPoison(JobLoop):
    """It has claimed, and the batch of its first transaction holds a record that nobody can read."""

    def _perform(self, action: JobAction, happened: Happened) -> Happened | None:
        if action is not JobAction.CUT_OVER:
            return super()._perform(action, happened)
        run = self.current.run
        assert run is not None
        in_flight, run.in_flight = run.in_flight, True  # so that it waits for a batch
        assert super()._perform(action, happened) is None
        run.in_flight = in_flight
        send(self.parts.kafka, [event_codec().encode(event(-1))[:-9]])
        return None


def survives_the_kill_of_the_new_one(
    dies: type[JobLoop], loaded: LoadedDetector, kafka: KafkaSettings, spark: SparkSession | None, folder: Path
) -> None:
    """r2 dies at a step of its cut-over: every alert comes once, from r1 or from the next start."""
    with Traffic(kafka, loaded) as traffic:
        old, new = with_standby(loaded, loaded, kafka, spark, folder, make=dies)
        new.order(generation=2)
        new.run.join()
        assert isinstance(new.run.error, Crash)
        if dies is DiesBeforeClaim:
            assert old.run.error is None  # it has not noticed
            before = old.report.records
            wait_for(lambda: old.report.records > before, "r1 to continue")
            after = old
        else:
            old.run.join()
            assert isinstance(old.run.error, Fenced)
            again = folder / ("r1" if dies is DiesAfterClaim else "r2")
            after = Job(loaded, kafka, spark, again, generation=3)
            after.wait(JobPhase.LIVE)
            wait_for(lambda: after.report.records > 0, "a batch after it")
    await_each_once(kafka, loaded, loaded.declaration.kind, traffic.rounds, after)


def survives_the_death_of_the_old_one(
    step: str, loaded: LoadedDetector, kafka: KafkaSettings, spark: SparkSession | None, folder: Path
) -> None:
    """r1 dies at a step of a batch, and r2 cuts over: every alert comes once."""
    with Traffic(kafka, loaded) as traffic:
        old, new = with_standby(loaded, loaded, kafka, spark, folder, old=Mortal)
        assert isinstance(old.run.runner, Mortal)
        old.run.runner.dies = step
        old.run.join()
        assert isinstance(old.run.error, Crash)
        new.order(generation=2)
        new.wait(JobPhase.LIVE)
        wait_for(lambda: new.report.records > 0, "a batch of r2")
    await_each_once(kafka, loaded, loaded.declaration.kind, traffic.rounds, new)


def survives_poison_at_the_cut_over(
    loaded: LoadedDetector, kafka: KafkaSettings, spark: SparkSession | None, folder: Path
) -> None:
    """The query of r2 fails between claim and first transaction: it restarts at the claimed offsets."""
    with under_replacement(loaded, loaded, kafka, spark, folder, make=MeetsPoison) as (traffic, new):
        wait_for(lambda: committed(kafka, kafka.topics.dead_letters(loaded.name)), "the dead letter")
        await_each_once(kafka, loaded, loaded.declaration.kind, traffic.end(), new)
    assert len(committed(kafka, kafka.topics.dead_letters(loaded.name))) == 1

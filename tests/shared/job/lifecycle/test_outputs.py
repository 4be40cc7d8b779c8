"""The outputs of a job on a log in memory: what a standby buffers, a cut-over publishes, a live job commits."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lozenge.errors import Fenced
from lozenge.job.batch_result import BatchResult, DraftAlert
from lozenge.job.drivers.driver import BatchProcessed
from lozenge.job.lifecycle.outputs import CutOver, LiveOutput, StandbyOutput
from lozenge.job.lifecycle.query_planner import QueryRun
from lozenge.protocol.commit_metadata import CommitMetadata
from tests.shared.job.lifecycle.scripted import ScriptedJob, alert


@pytest.fixture
def job(tmp_path: Path) -> ScriptedJob:
    return ScriptedJob(tmp_path).begin()


def live(job: ScriptedJob) -> LiveOutput:
    assert isinstance(job.current.output, LiveOutput)
    return job.current.output


def run_of(job: ScriptedJob) -> QueryRun:
    assert job.current.run is not None
    return job.current.run


def batch(number: int, *ends: int, alerts: Sequence[DraftAlert] = (), **more: Any) -> BatchProcessed:
    return BatchProcessed(number, dict(enumerate(ends)), BatchResult(alerts), 0.0, **more)


def samples(job: ScriptedJob) -> dict[str, Any]:
    found: dict[str, Any] = job.parts.metrics.snapshot()["samples"]
    return found


def test_a_live_output_counts_what_it_has_committed(job: ScriptedJob) -> None:
    assert live(job).accept(run_of(job), batch(0, 4, 6, alerts=[alert(0, 1)]), CommitMetadata(1, "c", 0))
    counted = samples(job)
    assert counted["lozenge_offsets_committed_total"] == 10
    assert counted["lozenge_emitted_total"] == 1
    assert live(job).position.offsets == {0: 4, 1: 6}
    assert live(job).position.metadata == CommitMetadata(1, "c", 0)


def test_what_spark_has_published_is_counted_when_its_batch_is_committed(job: ScriptedJob) -> None:
    published = batch(0, 4, 6, uncounted=10, emitted=3, latencies=[(2, 0.01), (1, 0.5)])
    live(job).accept(run_of(job), published, CommitMetadata(1, "c", 0))
    counted = samples(job)
    assert (counted["lozenge_offsets_begun_total"], counted["lozenge_emitted_total"]) == (10, 3)
    assert counted["lozenge_latency_seconds_count"] == 3


def test_nothing_is_counted_of_a_commit_that_is_refused(job: ScriptedJob) -> None:
    job.log.fenced = True
    with pytest.raises(Fenced):
        live(job).accept(run_of(job), batch(0, 4, 6, alerts=[alert(0, 1)]), CommitMetadata(1, "c", 0))
    counted = samples(job)
    assert (counted["lozenge_offsets_committed_total"], counted["lozenge_emitted_total"]) == (0, 0)
    assert live(job).position.offsets == {0: 0, 1: 0}


def test_a_standby_forgets_what_the_live_job_has_committed(job: ScriptedJob) -> None:
    standby = StandbyOutput(live(job).position)
    assert not standby.accept(run_of(job), batch(0, 9, 9, alerts=[alert(0, 2), alert(0, 7)]), CommitMetadata())
    assert standby.lag({0: 5, 1: 12}, {0: 9, 1: 9}) == 3
    assert [draft.position for draft in standby.buffer.prune({0: 5, 1: 12}).alerts] == [(0, 7)]
    assert job.log.transactions == 0


def cut_over(job: ScriptedJob, *alerts: DraftAlert) -> CutOver:
    standby = StandbyOutput(live(job).position)
    standby.accept(run_of(job), batch(0, 9, 9, alerts=alerts), CommitMetadata())
    return CutOver(standby.buffer, live(job), job.parts.kafka, job.parts.reporter, job.parts.metrics)


def test_a_cut_over_publishes_its_buffer_in_one_transaction(job: ScriptedJob) -> None:
    cut = cut_over(job, alert(0, 2), alert(1, 7))
    assert cut.publish(run_of(job), {0: 9, 1: 9}, CommitMetadata(2, "c", 0))
    assert (job.log.transactions, len(job.log.records), job.log.offsets) == (1, 2, {0: 9, 1: 9})
    assert job.parts.reporter.status.generation == 2


def test_a_cut_over_counts_what_it_publishes(job: ScriptedJob) -> None:
    cut = cut_over(job, alert(0, 2))
    assert cut.accept(run_of(job), batch(1, 10, 10, alerts=[alert(1, 9)]), CommitMetadata(2, "c", 1))
    assert samples(job)["lozenge_emitted_total"] == 2


def test_a_cut_over_that_is_fenced_itself_publishes_nothing(job: ScriptedJob) -> None:
    cut = cut_over(job, alert(0, 2))
    job.log.fenced = True
    with pytest.raises(Fenced):
        cut.publish(run_of(job), {0: 9, 1: 9}, CommitMetadata(2, "c", 0))
    assert (job.log.records, cut.position.offsets) == ([], {0: 0, 1: 0})


def test_a_cut_over_whose_query_is_behind_the_claim_waits_for_a_further_batch(job: ScriptedJob) -> None:
    cut = cut_over(job, alert(0, 2))
    cut.claimed.committer.offsets = {0: 12, 1: 0}
    assert not cut.publish(run_of(job), {0: 9, 1: 9}, CommitMetadata(2, "c", 0))
    run_of(job).read = {0: 9, 1: 9}
    assert cut.accept(run_of(job), batch(1, 15, 9, alerts=[alert(0, 11), alert(0, 14)]), CommitMetadata(2, "c", 1))
    assert (len(job.log.records), job.log.offsets) == (1, {0: 15, 1: 9})

"""What a job has now says whether it has claimed, and whether it is a standby."""

from pathlib import Path

from lozenge.job.lifecycle.job_parts import Current
from lozenge.job.lifecycle.outputs import CutOver, StandbyOutput
from tests.shared.job.lifecycle.scripted import ScriptedJob


def test_a_job_that_has_not_begun_has_no_claim_and_is_no_standby() -> None:
    assert (Current().claimed, Current().on_standby) == (None, False)


def test_a_job_is_a_standby_until_its_claim_and_has_one_output_from_then_on(tmp_path: Path) -> None:
    job = ScriptedJob(tmp_path).begin()
    live = job.current.claimed
    assert live is not None
    assert live is job.current.output
    assert not job.current.on_standby
    standby = StandbyOutput(live.position)
    waiting = Current(standby)
    assert (waiting.claimed, waiting.on_standby) == (None, True)
    cut = CutOver(standby.buffer, live, job.parts.kafka, job.parts.reporter, job.parts.metrics)
    cutting = Current(cut)
    assert cutting.claimed is live
    assert not cutting.on_standby

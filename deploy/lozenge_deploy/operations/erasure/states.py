"""The states of detectors: a detector is paused at a batch boundary, its state topic is changed, and it resumes.

A job has its states in memory and would write them again. It reads them from the topic when it starts. The change is
one transaction under the detector's own transactional id, so a job that runs all the same is fenced.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from lozenge.contracts.topic_patterns import job_of_state
from lozenge.contracts.topics import REWRITTEN, Topic
from lozenge.errors import LozengeError
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.topic_reader import read_log
from lozenge.kafka.writers import PartitionWriters, TransactionalWriter
from lozenge.protocol.coverage import CoverageSegment, newest
from lozenge_deploy.control.client import Control
from lozenge_deploy.control.deployments_view import follow_specs
from lozenge_deploy.control.records import DeploymentSpec, Goal
from lozenge_deploy.operations.erasure.compacted import erase_topic
from lozenge_deploy.operations.erasure.plan import Plan
from lozenge_deploy.operations.erasure.receipt import Line, Outcome, not_done
from lozenge_deploy.releases.release_store import Releases

WHY = "to erase records of a person from its state"


def erase_states(plan: Plan) -> Iterator[Line]:
    """A line for each topic with the states of a detector, or of a shadow release."""
    for topic, count in sorted(partitions(plan.kafka).items()):
        if (job := job_of_state(plan.kafka.topics, topic)) is not None:
            place = f"state of {job}"
            try:
                yield erase_topic(plan, place, Topic(topic, count, REWRITTEN), partial(_writing, plan, job, count))
            except LozengeError as error:
                yield not_done(place, error)


def closing_windows(plan: Plan) -> Iterator[Line]:
    """A line for each deployed detector that counts in windows: those are in a checkpoint, until they have closed."""
    if plan.kafka.topics.control.deployments not in partitions(plan.kafka):
        return
    with follow_specs(plan.kafka) as specs:
        deployed = {spec.detector: spec.release for spec in specs.rows.values()}
    for detector, release in sorted(Releases(plan.kafka).named(deployed).items()):
        if release.kind.state_in_checkpoint:
            what = "its open windows, which its checkpoint forgets once they have closed"
            yield Line(f"windows of {detector}", Outcome.EXPIRES, what=what)


@contextmanager
def _writing(plan: Plan, job: str, count: int) -> Iterator[TransactionalWriter]:
    """The only writer of a job, which does not run meanwhile."""
    with Control(plan.kafka) as control, paused(control, job.partition(".")[0], plan.seconds, plan.report):
        known = newest(read_log(plan.kafka, plan.kafka.topics.detector(job).coverage, CoverageSegment))
        writers = PartitionWriters(plan.kafka, job)
        writers.fence(range(count), shared=False, before=known is not None and known.shared)
        yield next(writer for writer, _ in writers.each())


@contextmanager
def paused(control: Control, detector: str, seconds: float, report: Callable[[str], None]) -> Iterator[None]:
    """No job of a detector runs within the block, and it runs again after it, if it did before.

    One that an erasure has paused which was killed runs again too. Raises ChangeFailed, ChangeTimedOut.
    """
    present = control.spec(detector)
    if present is None or not _runs(present):
        yield
        return
    wanted = present
    if present.goal is Goal.RUNNING:
        report(f"pausing {detector} at a batch boundary")
        wanted = control.change(present, "pause", WHY, goal=Goal.PAUSED, before=control.unproved(present))
    try:
        control.await_outcome(wanted, seconds, lambda status: None)
        yield
    finally:
        report(f"resuming {detector}")
        resumed = control.change(wanted, "resume", WHY, goal=Goal.RUNNING, before=wanted.before)
    control.await_outcome(resumed, seconds, lambda status: None)


def _runs(spec: DeploymentSpec) -> bool:
    return spec.goal is Goal.RUNNING or (spec.goal is Goal.PAUSED and spec.message == WHY)

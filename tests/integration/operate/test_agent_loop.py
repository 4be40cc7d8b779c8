"""A whole agent on a real broker, with fake jobs as processes."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from lozenge.contracts.topics import LOG_PARTITIONS
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import read
from lozenge_deploy.agent.agent import Agent
from lozenge_deploy.control.client import Control
from lozenge_deploy.control.leader_election import LeaseTiming
from lozenge_deploy.control.records import ChangeOutcome, DeploymentSpec, DetectorPhase, Goal, Lease
from lozenge_deploy.supervision.job_process import job_processes
from tests.deploy.agent.controllers import FakeJobs
from tests.waiting import until

DEADLINE_SECONDS = 90.0
QUICK = LeaseTiming(lease=3.0, renew=0.5)


class Jobs(FakeJobs):
    """In the place of the launcher; what other tests of the file have left in the topics never gets ready."""

    def __init__(self, detector: str) -> None:
        super().__init__()
        self._detector = detector

    def prepared(self, spec: DeploymentSpec) -> bool:
        return spec.detector == self._detector


@pytest.fixture
def name() -> str:
    return f"test_{uuid.uuid4().hex[:8]}"


@pytest.fixture
def jobs(name: str) -> Iterator[Jobs]:
    jobs = Jobs(name)
    yield jobs
    for instance in jobs.started:
        instance.kill()
        until(lambda: not instance.alive())  # noqa: B023


@contextmanager
def running(kafka: KafkaSettings, folder: Path, jobs: Jobs) -> Iterator[threading.Event]:
    agent, stop = Agent(kafka, folder, launcher=jobs, timing=QUICK, cleanup_seconds=0.5), threading.Event()
    thread = threading.Thread(target=agent.run, args=[stop])
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        thread.join(DEADLINE_SECONDS)
        assert not thread.is_alive()


def shipped(kafka: KafkaSettings, name: str, instance: str) -> list[bytes]:
    """The lines of a job's log in its topic."""
    messages = read(kafka, kafka.topics.logs, dict.fromkeys(range(LOG_PARTITIONS), 0))
    values = [m.value() or b"" for m in messages if m.key() == name.encode()]
    return [v for v in values if f'"instance": "{instance}"'.encode() in v]


def test_an_agent_applies_specs_and_the_next_one_continues(
    kafka: KafkaSettings, name: str, jobs: Jobs, tmp_path: Path
) -> None:
    with Control(kafka) as control:
        with running(kafka, tmp_path, jobs):
            one = control.apply(DeploymentSpec(detector=name, revision="", release="r1", what="deploy"))
            done = control.await_outcome(one, DEADLINE_SECONDS, lambda _: None)
            assert (done.phase, done.release, done.location.split(":")[1]) == (
                DetectorPhase.RUNNING,
                "r1",
                str(tmp_path),
            )
        [live] = job_processes(tmp_path / name)
        assert live.alive()

        with running(kafka, tmp_path, jobs):
            two = control.change(one, "deploy", release="r2")
            control.await_outcome(two, DEADLINE_SECONDS, lambda _: None)
            until(lambda: not live.alive())
            until(lambda: not live.folder.exists())  # all of its log is shipped
            three = control.change(two, "retire", goal=Goal.RETIRED)
            assert control.await_outcome(three, DEADLINE_SECONDS, lambda _: None).outcome is ChangeOutcome.DONE
        assert [i.alive() for i in job_processes(tmp_path / name)] == [False]
        events = [(h.what, h.release) for h in control.history(name)]
        assert events[:3] == [("deploy", "r1"), ("started", "r1"), ("live", "r1")]
        assert ("adopted", "r1") in events
        assert ("live", "r2") in events


def test_a_release_that_crashes_is_rolled_back_and_its_words_are_kept(
    kafka: KafkaSettings, name: str, jobs: Jobs, tmp_path: Path
) -> None:
    with Control(kafka) as control, running(kafka, tmp_path, jobs):
        one = control.apply(DeploymentSpec(detector=name, revision="", release="r1", what="deploy"))
        control.await_outcome(one, DEADLINE_SECONDS, lambda _: None)
        two = control.change(one, "deploy", release="r2 crash at start")
        with pytest.raises(Exception, match="it cannot start"):
            control.await_outcome(two, DEADLINE_SECONDS, lambda _: None)
        until(lambda: any(b"it cannot start" in line for line in shipped(kafka, name, "g2")))
        control.change(control.deployed(name), "retire", goal=Goal.RETIRED)
        until(lambda: not any(i.alive() for i in jobs.started))


def test_an_agent_that_lost_the_leadership_stops_its_jobs_for_the_other_folder(
    kafka: KafkaSettings, name: str, jobs: Jobs, tmp_path: Path
) -> None:
    with Control(kafka) as control, running(kafka, tmp_path, jobs) as stop:
        one = control.apply(DeploymentSpec(detector=name, revision="", release="r1", what="deploy"))
        control.await_outcome(one, DEADLINE_SECONDS, lambda _: None)
        [live] = job_processes(tmp_path / name)
        write_lease(kafka, "elsewhere")
        until(lambda: not live.alive())
        assert live.exit_code() == 0
        stop.set()
        write_lease(kafka, "")
        control.change(one, "retire", goal=Goal.RETIRED)


def write_lease(kafka: KafkaSettings, agent: str) -> None:
    """Claims the leadership as an agent of another host does, or gives it up."""
    producer = Producer(kafka.client(transactional_id="lozenge-agent"))
    producer.init_transactions(30)
    producer.begin_transaction()
    lease = Lease(agent=agent, host="elsewhere", folder="/jobs")
    producer.produce(kafka.topics.control.leases, lease.model_dump_json().encode(), b"leader", partition=0)
    producer.commit_transaction(30)


def test_of_two_agents_in_one_folder_the_follower_continues_with_the_same_jobs(
    kafka: KafkaSettings, name: str, jobs: Jobs, tmp_path: Path
) -> None:
    with Control(kafka) as control:
        with running(kafka, tmp_path, jobs) as first:
            one = control.apply(DeploymentSpec(detector=name, revision="", release="r1", what="deploy"))
            control.await_outcome(one, DEADLINE_SECONDS, lambda _: None)
            with running(kafka, tmp_path, jobs):
                first.set()
                until(lambda: any(h.what == "adopted" for h in control.history(name)))
                two = control.change(one, "settings", settings={"limit": 3})
                control.await_outcome(two, DEADLINE_SECONDS, lambda _: None)
                control.change(two, "retire", goal=Goal.RETIRED)
                until(lambda: not any(i.alive() for i in jobs.started))
        assert len(jobs.started) == 1

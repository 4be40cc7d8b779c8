"""Specs that an operator applies and waits for, on a real broker, with a hand-written status."""

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Producer
from pydantic import BaseModel

from lozenge.errors import UsageError
from lozenge.kafka.compacted_topic import follow
from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.control.client import ChangeFailed, ChangeTimedOut, Control
from lozenge_deploy.control.records import ChangeOutcome, DeploymentSpec, DeploymentStatus, DetectorPhase, Goal, Lease

LONG = 60.0


@pytest.fixture
def control(kafka: KafkaSettings) -> Iterator[Control]:
    with Control(kafka) as control:
        yield control


@pytest.fixture
def first(kafka: KafkaSettings) -> Iterator[DeploymentSpec]:
    """The first spec of a detector of the test's own, which no agent of another test sees."""
    first = DeploymentSpec(detector=f"test_{uuid.uuid4().hex[:8]}", revision="", release="r1", what="deploy")
    yield first
    put(kafka, kafka.topics.control.deployments, first.detector, None)


def put(kafka: KafkaSettings, topic: str, key: str, record: BaseModel | bytes | None) -> None:
    producer = Producer(kafka.client())
    value = record.model_dump_json().encode() if isinstance(record, BaseModel) else record
    producer.produce(topic, value, key.encode(), 0)
    assert producer.flush(30) == 0


def observe(kafka: KafkaSettings, wanted: DeploymentSpec, outcome: ChangeOutcome, **more: object) -> None:
    live = outcome in (ChangeOutcome.WATCHED, ChangeOutcome.DONE)
    status = {"detector": wanted.detector, "revision": wanted.revision, "outcome": outcome} | more
    status |= {"process": list(wanted.process)} if live else {}
    put(kafka, kafka.topics.control.status, wanted.detector, DeploymentStatus.model_validate(status))


def test_a_table_holds_the_last_record_of_every_key_and_follows(kafka: KafkaSettings, control: Control) -> None:
    one, other = f"test_{uuid.uuid4().hex[:8]}", f"test_{uuid.uuid4().hex[:8]}"
    for reason in ("first", "second"):
        put(kafka, kafka.topics.control.status, one, DeploymentStatus(detector=one, reason=reason))
    with follow(kafka, kafka.topics.control.status, DeploymentStatus) as table:
        assert table.rows[one].reason == "second"
        put(kafka, kafka.topics.control.status, other, DeploymentStatus(detector=other))
        put(kafka, kafka.topics.control.status, one, None)
        changed: set[str] = set()
        while not {one, other} <= changed:
            changed |= set(table.poll(1.0))
        assert other in table.rows
        assert one not in table.rows


def test_an_unreadable_record_changes_nothing(kafka: KafkaSettings, control: Control) -> None:
    name = f"test_{uuid.uuid4().hex[:8]}"
    put(kafka, kafka.topics.control.status, name, DeploymentStatus(detector=name, reason="readable"))
    put(kafka, kafka.topics.control.status, name, b'{"detector": 7')
    with follow(kafka, kafka.topics.control.status, DeploymentStatus) as table:
        assert table.rows[name].reason == "readable"


def test_a_detector_that_was_never_deployed_is_a_usage_error(control: Control, first: DeploymentSpec) -> None:
    assert control.spec(first.detector) is None
    with pytest.raises(UsageError, match="never been deployed"):
        control.deployed(first.detector)


def test_a_spec_is_done_when_the_agent_reports_it(
    kafka: KafkaSettings, control: Control, first: DeploymentSpec
) -> None:
    wanted = control.apply(first)
    steps: list[DeploymentStatus] = []
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(control.await_outcome, wanted, LONG, steps.append)
        observe(kafka, wanted, ChangeOutcome.WORKING, phase=DetectorPhase.STARTING)
        observe(kafka, wanted, ChangeOutcome.DONE, phase=DetectorPhase.RUNNING)
        assert waiting.result().phase is DetectorPhase.RUNNING
    assert steps[-1].outcome is ChangeOutcome.DONE
    assert control.deployed(first.detector) == wanted
    assert [(h.what, h.release, h.by) for h in control.history(first.detector)] == [("deploy", "r1", wanted.by)]


def test_a_change_rolls_back_to_the_last_spec_that_outlasted_its_watch_window(
    kafka: KafkaSettings, control: Control, first: DeploymentSpec
) -> None:
    one = control.apply(first)
    observe(kafka, one, ChangeOutcome.DONE)
    assert control.await_outcome(one, LONG, lambda _: None).outcome is ChangeOutcome.DONE
    two = control.change(one, "settings", settings={"limit": 3})
    observe(kafka, two, ChangeOutcome.WATCHED)
    control.await_outcome(two, LONG, lambda _: None)
    three = control.change(two, "settings", settings={"limit": 4})
    assert (two.before, three.before) == (one, two)
    observe(kafka, three, ChangeOutcome.DONE)
    control.await_outcome(three, LONG, lambda _: None)
    four = control.change(three, "settings", settings={"limit": 5})
    assert four.before == three.updated(before=None)
    assert len({one.revision, two.revision, three.revision}) == 3


def test_a_spec_that_was_rolled_back_is_not_done(kafka: KafkaSettings, control: Control, first: DeploymentSpec) -> None:
    one = control.apply(first)
    two = control.change(one, "deploy", release="r2")
    observe(kafka, two, ChangeOutcome.FAILED, reason="it ended")
    back = one.model_copy(update={"revision": "back", "undoes": two.revision, "message": "it ended", "by": "agent"})
    put(kafka, kafka.topics.control.deployments, first.detector, back)
    with pytest.raises(ChangeFailed, match="it ended"):
        control.await_outcome(two, LONG, lambda _: None)


def test_a_spec_that_failed_without_an_earlier_one_is_not_done(
    kafka: KafkaSettings, control: Control, first: DeploymentSpec
) -> None:
    wanted = control.apply(first)
    observe(kafka, wanted, ChangeOutcome.FAILED, reason="it ended 3 times")
    with pytest.raises(ChangeFailed, match="3 times"):
        control.await_outcome(wanted, LONG, lambda _: None)


def test_a_spec_that_another_one_replaced_is_not_done(
    kafka: KafkaSettings, control: Control, first: DeploymentSpec
) -> None:
    one = control.apply(first)
    control.change(one, "pause", goal=Goal.PAUSED)
    with pytest.raises(ChangeFailed, match="pause was requested by"):
        control.await_outcome(one, LONG, lambda _: None)


def test_a_spec_that_takes_too_long_ends_the_wait_with_an_exit_code_of_its_own(
    kafka: KafkaSettings, control: Control, first: DeploymentSpec
) -> None:
    wanted = control.apply(first)
    observe(kafka, wanted, ChangeOutcome.WORKING)
    with pytest.raises(ChangeTimedOut) as raised:
        control.await_outcome(wanted, 2.0, lambda _: None)
    assert raised.value.exit_code == 124


@pytest.mark.parametrize("agent", ["", "somebody"])
def test_without_an_agent_the_wait_says_so_before_its_time_is_up(
    kafka: KafkaSettings, first: DeploymentSpec, agent: str
) -> None:
    put(kafka, kafka.topics.control.leases, "leader", Lease(agent=agent, host="here", folder="/jobs"))
    with Control(kafka, no_agent_seconds=1.0) as control:
        wanted = control.apply(first)
        with pytest.raises(ChangeFailed, match="no agent answers"):
            control.await_outcome(wanted, LONG, lambda _: None)
    put(kafka, kafka.topics.control.leases, "leader", Lease(agent="", host="here", folder="/jobs"))

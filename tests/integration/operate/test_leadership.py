"""The leadership on a real broker. Its transactional id and its lease are the same for all tests of a run."""

import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from lozenge.errors import BrokerUnavailable
from lozenge.kafka.compacted_topic import follow
from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.control.leader_election import Leadership, LeadershipLost, LeaseTiming, Row
from lozenge_deploy.control.records import DeploymentStatus, Lease
from tests.waiting import until

DEADLINE_SECONDS = 60.0
QUICK = LeaseTiming(lease=3.0, renew=0.5)


@pytest.fixture
def agent(kafka: KafkaSettings) -> Iterator[Callable[[], Leadership]]:
    """Makes an agent's part; in the end all of them have stepped down."""
    made: list[Leadership] = []

    def make() -> Leadership:
        made.append(Leadership(kafka, Lease(agent=uuid.uuid4().hex[:12], host="here", folder="/jobs"), QUICK))
        return made[-1]

    yield make
    for each in made:
        with suppress(LeadershipLost):
            each.resign()
        each.close()


def row(kafka: KafkaSettings, name: str, reason: str) -> Row:
    return kafka.topics.control.status, name, DeploymentStatus(detector=name, reason=reason)


def test_the_follower_becomes_leader_at_once_when_the_leader_resigns(
    agent: Callable[[], Leadership], kafka: KafkaSettings
) -> None:
    one, other = agent(), agent()
    until(one.tick)
    assert not other.tick()
    until(lambda: other.leader == one.leader)
    for _ in range(20):
        assert one.tick()
        assert not other.tick()
    one.resign()
    assert not one.leading
    until(other.tick)


def test_a_leader_that_no_longer_renews_loses_the_leadership_and_stores_nothing(
    agent: Callable[[], Leadership], kafka: KafkaSettings
) -> None:
    one, other, name = agent(), agent(), f"test_{uuid.uuid4().hex[:8]}"
    until(one.tick)
    one.write([row(kafka, name, "of the first")])
    until(other.tick)
    assert one.leading  # as far as it knows
    with pytest.raises(LeadershipLost):
        one.write([row(kafka, name, "of a sleeper"), row(kafka, f"{name}_too", "of a sleeper")])
    assert not one.leading
    assert not one.tick()
    other.write([row(kafka, name, "of the second")])
    with follow(kafka, kafka.topics.control.status, DeploymentStatus) as status:
        assert status.rows[name].reason == "of the second"
        assert f"{name}_too" not in status.rows


def test_a_suspended_leader_does_not_act_after_its_lease(agent: Callable[[], Leadership], kafka: KafkaSettings) -> None:
    one, other = agent(), agent()
    until(one.tick)
    until(other.tick)
    assert not one.tick()
    assert other.tick()


def test_of_two_concurrent_candidates_one_becomes_leader(agent: Callable[[], Leadership], kafka: KafkaSettings) -> None:
    both = [agent(), agent()]
    with ThreadPoolExecutor(2) as threads:
        deadline = time.monotonic() + DEADLINE_SECONDS
        acting: list[bool] = []
        while sum(acting) != 1 or not settled(both):
            assert time.monotonic() < deadline
            acting = list(threads.map(is_leader, both))
    for _ in range(10):
        assert [each.tick() for each in both] == acting


def settled(both: list[Leadership]) -> bool:
    """Whether both know of the same leader."""
    return len({each.leader.agent for each in both if each.leader}) == 1 and all(each.leader for each in both)


def test_a_follower_that_slept_reads_the_lease_again_before_it_takes_the_leadership(
    agent: Callable[[], Leadership], kafka: KafkaSettings
) -> None:
    one, other = agent(), agent()
    until(one.tick)
    until(lambda: not other.tick() and other.leader == one.leader)
    awake = time.monotonic() + 1.5 * QUICK.lease
    while time.monotonic() < awake:
        assert one.tick()
    assert not other.tick()
    one.write([row(kafka, f"test_{uuid.uuid4().hex[:8]}", "undisturbed")])


def is_leader(one: Leadership) -> bool:
    """Whether it is the leader. An agent asks again after an error of the broker, which two at once may meet."""
    with suppress(BrokerUnavailable):
        return one.tick()
    return False

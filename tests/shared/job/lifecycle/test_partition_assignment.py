"""Which partitions a job processes: a member of its group from its first question to `leave`."""

from typing import Any

import pytest

from lozenge.job.lifecycle import partition_assignment
from lozenge.job.lifecycle.partition_assignment import PartitionAssignment


class Group:
    """What Kafka assigns; `members` counts who has joined and not left."""

    members = 0
    partitions = frozenset({("events", 1)})

    def __init__(self, kafka: object, group: str, topics: list[str]) -> None:
        assert (group, topics) == ("one", ["events"])

    def join(self) -> None:
        type(self).members += 1

    def settle(self) -> frozenset[tuple[str, int]]:
        return self.partitions

    def leave(self) -> None:
        type(self).members -= 1


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> type[Group]:
    fresh = type("Fresh", (Group,), {})
    monkeypatch.setattr(partition_assignment, "Membership", fresh)
    return fresh


def assignment() -> PartitionAssignment:
    class Names:
        app, input = "one", "events"

    names: Any = Names
    kafka: Any = None
    return PartitionAssignment(kafka, names)


def test_a_job_that_is_the_only_one_is_no_member(group: type[Group]) -> None:
    alone = assignment()
    assert (alone.changed, group.members) == (False, 0)
    alone.leave()
    assert group.members == 0


def test_an_instance_is_a_member_until_it_leaves(group: type[Group]) -> None:
    one = assignment()
    assert one.assigned() == one.assigned() == {1}
    assert group.members == 1
    one.claimed = frozenset({1})
    one.leave()
    assert (group.members, one.claimed, one.changed) == (0, frozenset(), False)


def test_an_assignment_differs_until_it_is_claimed(group: type[Group]) -> None:
    one = assignment()
    one.claimed = one.assigned()
    assert not one.changed
    group.partitions = frozenset({("events", 1), ("events", 2)})
    assert one.changed
    one.claimed = one.assigned()
    assert (one.claimed, one.changed) == (frozenset({1, 2}), False)


def test_an_instance_is_not_the_only_one(group: type[Group]) -> None:
    one = assignment()
    one.exclusive = True
    one.assigned()
    assert not one.exclusive

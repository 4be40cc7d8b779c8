"""What the group assigns is held until the group revokes it, and a revocation waits for the work on it."""

import threading

import pytest

from lozenge.errors import LozengeError
from lozenge_upstream.streaming.held_assignment import Assignment, HeldAssignment


def assignment() -> Assignment:
    return Assignment({"AUTH-JSON": [0, 1]}, "generation 1")


def test_the_newest_assignment_is_held() -> None:
    held, first, second = HeldAssignment(), assignment(), assignment()
    with held.holding() as nothing:
        assert nothing is None
    for given in (first, second):
        held.take(given)
        with held.holding() as found:
            assert found is given
    assert held.is_revoked(first), "the same partitions in a later generation are another assignment"
    assert not held.is_revoked(second)


def test_a_revocation_is_seen_at_once_and_waits_for_the_block_that_holds_the_assignment() -> None:
    held, given = HeldAssignment(), assignment()
    held.take(given)
    revocation = threading.Thread(target=held.revoke)
    with held.holding():
        revocation.start()
        while not held.is_revoked(given):
            assert revocation.is_alive()
        revocation.join(0.05)
        assert revocation.is_alive(), "another instance would get partitions that this one works on"
    revocation.join(10)
    assert not revocation.is_alive()
    with held.holding() as found:
        assert found is None


def test_the_error_that_ends_a_membership_ends_its_assignment_and_is_raised_to_the_worker() -> None:
    held, given = HeldAssignment(), assignment()
    held.take(given)
    held.fail(LozengeError("taking part in the group upstream: not authorised"))
    assert held.is_revoked(given)
    with pytest.raises(LozengeError, match="not authorised"), held.holding():
        raise AssertionError("nobody may work without a membership")

"""After an outage of the broker or a sleep of the machine, the jobs have their time to report."""

import pytest

from lozenge_deploy.agent.agent import SLEPT_SECONDS, BrokerStability

WALL, MONOTONIC = 1_700_000_000.0, 50.0
SLEEP = SLEPT_SECONDS + 1


def test_the_broker_counts_as_stable_at_the_start() -> None:
    assert BrokerStability(WALL, MONOTONIC).seconds(WALL + 1, MONOTONIC + 1) == float("inf")


def test_an_interruption_starts_the_time_again() -> None:
    stability = BrokerStability(WALL, MONOTONIC)
    stability.interrupted(MONOTONIC + 2)
    assert stability.seconds(WALL + 5, MONOTONIC + 5) == 3


@pytest.mark.parametrize(("wall", "monotonic"), [(SLEEP, SLEEP), (SLEEP, 0.1), (-SLEEP, 0.1)])
def test_a_sleep_or_a_change_of_the_clock_is_an_interruption(wall: float, monotonic: float) -> None:
    stability = BrokerStability(WALL, MONOTONIC)
    assert stability.seconds(WALL + wall, MONOTONIC + monotonic) == 0
    assert stability.seconds(WALL + wall + 4, MONOTONIC + monotonic + 4) == 4

"""When a live job counts as unhealthy, without any process."""

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from lozenge.protocol.job_status import JOB_STATUS, JobPhase, JobStatus
from lozenge_deploy.agent.health import (
    CRASH_LOOP_SECONDS,
    GROWING_SECONDS,
    MAX_BACKOFF_SECONDS,
    SAMPLE_SECONDS,
    Health,
    stuck,
)

AT = 1_000_000.0
TRIGGER = timedelta(seconds=1)
BROKER_STABLE_SECONDS = 3600.0


def write_report(folder: Path, report: JobStatus) -> None:
    (folder / JOB_STATUS).write_bytes(msgspec.json.encode(report))


def report(at: float = AT, pid: int = 7, records: int = 0, dead_letters: int = 0, lag: int = 0) -> JobStatus:
    return JobStatus(
        pid, 1.0, phase=JobPhase.LIVE, last_progress_at=at, records=records, dead_letters=dead_letters, lag=lag
    )


def problem(health: Health, status: JobStatus) -> str:
    return health.sampled(status, AT).problem(status, AT, TRIGGER, BROKER_STABLE_SECONDS)


def test_a_job_that_makes_progress_is_healthy() -> None:
    assert problem(Health(), report(records=1000)) == ""
    assert Health().crash_loop(AT) == ""


def test_an_open_circuit_is_unhealthy() -> None:
    opened = msgspec.structs.replace(report(), circuit_open="it raises on 10 of 10")
    assert problem(Health(), opened) == "its circuit is open: it raises on 10 of 10"


def test_three_exits_in_five_minutes_are_a_crash_loop() -> None:
    health = Health()
    for second in range(2):
        health = health.exited(AT + second)
    assert health.crash_loop(AT + 2) == ""
    health = health.exited(AT + 2)
    assert health.crash_loop(AT + 2) == "it exited 3 times within 5 minutes"


def test_exits_are_forgotten_in_time() -> None:
    health = Health()
    for second in range(3):
        health = health.exited(AT + second)
    assert health.crash_loop(AT + CRASH_LOOP_SECONDS + 1) == ""
    health = health.exited(AT + 2 * CRASH_LOOP_SECONDS)
    assert health.backoff() == 0.0


def test_the_backoff_doubles_from_the_second_exit_to_a_minute() -> None:
    health, waits = Health(), []
    for second in range(10):
        health = health.exited(AT + second)
        waits.append(health.backoff())
    assert waits == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, MAX_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS]
    assert Health().backoff() == 0.0


@pytest.mark.parametrize(("seconds", "trigger", "unhealthy"), [(33, 1, False), (34, 1, True), (34, 60, False)])
def test_a_job_whose_batch_does_not_end_is_stuck(seconds: float, trigger: float, unhealthy: bool) -> None:
    assert stuck(report(AT), AT + seconds, timedelta(seconds=trigger), BROKER_STABLE_SECONDS) is unhealthy
    assert (
        bool(Health().problem(report(AT), AT + seconds, timedelta(seconds=trigger), BROKER_STABLE_SECONDS)) is unhealthy
    )


def test_time_without_a_broker_makes_no_job_stuck() -> None:
    assert not stuck(report(AT), AT + 3600, TRIGGER, broker_stable_seconds=33)
    assert stuck(report(AT), AT + 3600, TRIGGER, broker_stable_seconds=34)


@pytest.mark.parametrize(
    ("records", "dead_letters", "unhealthy"), [(100, 9, False), (100, 10, True), (1000, 10, False)]
)
def test_more_than_one_dead_letter_in_a_hundred_is_too_much(records: int, dead_letters: int, unhealthy: bool) -> None:
    health = Health().sampled(report(records=50, dead_letters=50), AT)  # earlier records do not count
    now = report(records=50 + records, dead_letters=50 + dead_letters)
    assert bool(problem(health, now)) is unhealthy


def test_another_process_counts_from_its_own_start() -> None:
    health = Health().sampled(report(records=50, dead_letters=50), AT)
    assert problem(health, report(pid=8, records=100, dead_letters=20)) == ""


def lags(health: Health, values: list[int], at: float = AT) -> tuple[Health, str]:
    """The record, and the first problem, if the lag takes these values, one per sample."""
    unhealthy = ""
    for index, lag in enumerate(values):
        now = at + index * SAMPLE_SECONDS
        health = health.sampled(report(now, lag=lag), now)
        unhealthy = unhealthy or health.problem(report(now, lag=lag), now, TRIGGER, BROKER_STABLE_SECONDS)
    return health, unhealthy


def test_a_lag_that_only_grows_is_unhealthy() -> None:
    samples = int(GROWING_SECONDS / SAMPLE_SECONDS) + 1
    assert "its lag grew for" in lags(Health(), [100 * n for n in range(samples)])[1]
    assert lags(Health(), [100 * n for n in range(samples - 1)])[1] == ""


def test_a_lag_that_shrinks_once_is_healthy() -> None:
    assert lags(Health(), [100, 200, 300, 400, 500, 600, 600, 700, 800, 900, 1000, 1100, 1200, 1300])[1] == ""


def test_a_lag_that_grew_between_two_distant_samples_is_healthy() -> None:
    health, _ = lags(Health(), [0])
    assert lags(health, [5000], AT + 2 * GROWING_SECONDS)[1] == ""

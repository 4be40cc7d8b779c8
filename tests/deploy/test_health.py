"""When a live job counts as ill, without any process."""

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from lozenge.protocol.job_status import JOB_STATUS, JobStatus, Phase
from lozenge_deploy.agent.health import EXIT_SECONDS, GROWING_SECONDS, LONGEST_WAIT, SAMPLE_SECONDS, Health, stuck

AT = 1_000_000.0
TRIGGER = timedelta(seconds=1)
CALM = 3600.0


def write_report(folder: Path, report: JobStatus) -> None:
    (folder / JOB_STATUS).write_bytes(msgspec.json.encode(report))


def report(at: float = AT, pid: int = 7, records: int = 0, dead_letters: int = 0, lag: int = 0) -> JobStatus:
    return JobStatus(
        pid, 1.0, phase=Phase.LIVE, last_progress_at=at, records=records, dead_letters=dead_letters, lag=lag
    )


def test_one_that_does_its_work_is_well() -> None:
    assert Health().illness(report(records=1000), AT, TRIGGER, CALM) == ""
    assert Health().crash_loop(AT) == ""


def test_one_that_is_parked_is_ill() -> None:
    parked = msgspec.structs.replace(report(), circuit_open="it raises on 10 of 10")
    assert Health().illness(parked, AT, TRIGGER, CALM) == "it is parked: it raises on 10 of 10"


def test_three_exits_in_five_minutes_are_a_crash_loop() -> None:
    health = Health()
    for second in range(2):
        health.exited(AT + second)
    assert health.crash_loop(AT + 2) == ""
    health.exited(AT + 2)
    assert health.crash_loop(AT + 2) == "it ended 3 times within 5 minutes"


def test_exits_are_forgotten_in_time() -> None:
    health = Health()
    for second in range(3):
        health.exited(AT + second)
    assert health.crash_loop(AT + EXIT_SECONDS + 1) == ""
    health.exited(AT + 2 * EXIT_SECONDS)
    assert health.wait() == 0.0


def test_waits_double_from_the_second_exit_to_a_minute() -> None:
    health, waits = Health(), []
    for second in range(10):
        health.exited(AT + second)
        waits.append(health.wait())
    assert waits == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, LONGEST_WAIT, LONGEST_WAIT, LONGEST_WAIT]
    assert Health().wait() == 0.0


@pytest.mark.parametrize(("seconds", "trigger", "ill"), [(33, 1, False), (34, 1, True), (34, 60, False)])
def test_one_whose_batch_does_not_end_is_stuck(seconds: float, trigger: float, ill: bool) -> None:
    assert stuck(report(AT), AT + seconds, timedelta(seconds=trigger), CALM) is ill
    assert bool(Health().illness(report(AT), AT + seconds, timedelta(seconds=trigger), CALM)) is ill


def test_the_time_without_a_broker_makes_nobody_stuck() -> None:
    assert not stuck(report(AT), AT + 3600, TRIGGER, calm=33)
    assert stuck(report(AT), AT + 3600, TRIGGER, calm=34)


@pytest.mark.parametrize(("records", "letters", "ill"), [(100, 9, False), (100, 10, True), (1000, 10, False)])
def test_more_than_one_dead_letter_in_a_hundred_is_too_much(records: int, letters: int, ill: bool) -> None:
    health = Health()
    health.illness(report(records=50, dead_letters=50), AT, TRIGGER, CALM)  # what was before does not count
    now = report(records=50 + records, dead_letters=50 + letters)
    assert bool(health.illness(now, AT, TRIGGER, CALM)) is ill


def test_another_process_counts_from_its_own_beginning() -> None:
    health = Health()
    health.illness(report(records=50, dead_letters=50), AT, TRIGGER, CALM)
    assert health.illness(report(pid=8, records=100, dead_letters=20), AT, TRIGGER, CALM) == ""


def lags(health: Health, values: list[int], at: float = AT) -> str:
    """What it comes to when the lag takes these values, one a sample."""
    ill = ""
    for index, lag in enumerate(values):
        now = at + index * SAMPLE_SECONDS
        ill = ill or health.illness(report(now, lag=lag), now, TRIGGER, CALM)
    return ill


def test_a_lag_that_only_grows_is_an_illness() -> None:
    samples = int(GROWING_SECONDS / SAMPLE_SECONDS) + 1
    assert "its lag grew to" in lags(Health(), [100 * n for n in range(samples)])
    assert lags(Health(), [100 * n for n in range(samples - 1)]) == ""


def test_a_lag_that_comes_down_once_is_none() -> None:
    assert lags(Health(), [100, 200, 300, 400, 500, 600, 600, 700, 800, 900, 1000, 1100, 1200, 1300]) == ""


def test_a_lag_that_grew_while_nobody_looked_is_none() -> None:
    health = Health()
    assert lags(health, [0]) == ""
    assert lags(health, [5000], AT + 2 * GROWING_SECONDS) == ""

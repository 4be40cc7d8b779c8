"""The exits of a program decide whether and when it is started again, without processes and clocks."""

import pytest

from lozenge_deploy.supervision.restart_policy import (
    FAILURE,
    FAILURES,
    FIRST_WAIT,
    LONGEST_WAIT,
    SETTLED_SECONDS,
    USAGE,
    ProgramState,
    RestartPolicy,
)

OTHER = 3
"""An exit code that is neither a usage error nor a failure."""
QUICK, LONG = 1.0, SETTLED_SECONDS + 1.0
"""How long a process ran."""


def states(*exits: tuple[int, float], finite: bool = False) -> list[ProgramState]:
    """The states after exits with these codes, each after so many seconds."""
    policy = RestartPolicy(finite=finite)
    return [policy.exited(code, 0.0, ran) for code, ran in exits]


@pytest.mark.parametrize(
    ("code", "finite", "state"),
    [
        (0, False, ProgramState.WAITING),
        (0, True, ProgramState.ENDED),
        (FAILURE, False, ProgramState.WAITING),
        (FAILURE, True, ProgramState.FAILED),
        (USAGE, False, ProgramState.FAILED),
        (OTHER, False, ProgramState.WAITING),
        (-9, False, ProgramState.WAITING),
    ],
)
def test_an_exit_code_decides_whether_a_program_is_restarted(code: int, finite: bool, state: ProgramState) -> None:
    assert states((code, QUICK), finite=finite) == [state]


def test_failures_in_a_row_end_the_restarts() -> None:
    assert states(*[(FAILURE, QUICK)] * FAILURES)[-1] is ProgramState.FAILED
    assert states((FAILURE, QUICK), (OTHER, QUICK), *[(FAILURE, QUICK)] * (FAILURES - 1))[-1] is ProgramState.WAITING


def test_a_program_that_has_worked_once_is_always_restarted() -> None:
    assert set(states((FAILURE, LONG), *[(FAILURE, QUICK)] * 2 * FAILURES)) == {ProgramState.WAITING}


def test_the_wait_doubles_to_a_bound_and_is_short_again_after_a_long_run() -> None:
    policy = RestartPolicy(finite=False)
    waits = []
    for ran in [QUICK] * 6 + [LONG, QUICK]:
        policy.exited(OTHER, 0.0, ran)
        waits.append(next(wait for wait in range(100) if policy.is_due(ran + wait)))
    assert waits == [FIRST_WAIT, 2, 4, 8, 16, LONGEST_WAIT, FIRST_WAIT, 2]

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from lozenge_deploy.supervision import restart_policy
from lozenge_deploy.supervision.restart_policy import ProgramState
from lozenge_deploy.supervision.supervisor import Program, Supervisor

DEADLINE_SECONDS = 20.0


@pytest.fixture
def supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    monkeypatch.setattr(restart_policy, "FIRST_WAIT", 0.1)
    monkeypatch.setattr(restart_policy, "LONGEST_WAIT", 0.4)
    with Supervisor(tmp_path / "logs") as supervisor:
        yield supervisor


def program(folder: Path, script: str, *, finite: bool = False, nice: int = 0) -> Program:
    """A shell script that knows as START which start this is."""
    return Program("it", ["sh", "-c", script], lambda n: os.environ | {"START": str(n)}, folder, nice, finite)


def until(condition: Callable[[], object], supervisor: Supervisor | None = None) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        if supervisor:
            supervisor.watch()
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether it runs; an orphan that nobody has reaped yet does not."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
    return bool(state.strip()) and not state.startswith("Z")


def test_a_child_that_dies_is_restarted_under_a_new_number_after_a_growing_wait(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    child = supervisor.start(program(tmp_path, 'date +%s.%N; [ "$START" = 3 ] && exec sleep 60; exit 3'))
    until(lambda: child.starts == 4, supervisor)
    until(lambda: len(child.log.read_text().splitlines()) == 4)
    at = [float(line) for line in child.log.read_text().splitlines()]
    waits = [later - earlier for earlier, later in pairwise(at)]
    assert waits[0] >= 0.1
    assert waits[1] >= 0.2
    assert waits[2] >= 0.4


def test_temporary_files_of_a_start_are_gone_with_the_next(supervisor: Supervisor, tmp_path: Path) -> None:
    script = 'ls "$TMPDIR"; [ "$START" = 1 ] && exec sleep 60; touch "$TMPDIR/block"; kill -9 $$'
    child = supervisor.start(program(tmp_path, script + "; echo never"))
    until(lambda: child.starts == 2, supervisor)
    assert child.log.read_text() == ""


def test_a_usage_error_is_shown_and_not_restarted(supervisor: Supervisor, tmp_path: Path) -> None:
    child = supervisor.start(program(tmp_path, """echo '{"event": "no such setting", "level": "error"}'; exit 2"""))
    until(lambda: child.state is ProgramState.FAILED, supervisor)
    time.sleep(0.2)
    supervisor.watch()
    assert child.starts == 1
    assert child.last_error() == "no such setting"


def test_three_failures_in_a_row_end_the_restarts(supervisor: Supervisor, tmp_path: Path) -> None:
    child = supervisor.start(program(tmp_path, 'echo "start $START"; [ "$START" = 1 ] && exit 3; exit 1'))
    until(lambda: child.state is ProgramState.FAILED, supervisor)
    assert child.starts == 5
    assert child.last_error() == "start 4"


def test_a_child_that_has_worked_once_is_always_restarted(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restart_policy, "SETTLED_SECONDS", 0.3)
    child = supervisor.start(program(tmp_path, "[ $START = 0 ] && sleep 0.6; exit 1"))
    until(lambda: child.starts > restart_policy.FAILURES + 2, supervisor)
    assert child.state is not ProgramState.FAILED


def test_an_error_that_is_not_json_is_shown_as_text(supervisor: Supervisor, tmp_path: Path) -> None:
    child = supervisor.start(program(tmp_path, "echo first; echo 12", finite=True))
    until(lambda: child.state is ProgramState.ENDED, supervisor)
    assert child.last_error() == "12"


def test_a_stop_ends_the_child_and_its_own_children(tmp_path: Path) -> None:
    script = 'trap "echo stopped; exit 0" TERM; sleep 600 & echo $!; while :; do sleep 0.05; done'
    with Supervisor(tmp_path / "logs") as supervisor:
        child = supervisor.start(program(tmp_path, script))
        until(lambda: child.log.read_text().strip())
        grandchild = int(child.log.read_text())
        assert alive(grandchild)
    assert child.state is ProgramState.STOPPED
    assert child.code == 0
    assert child.log.read_text().endswith("stopped\n")
    until(lambda: not alive(grandchild))


def test_a_child_that_ignores_the_stop_is_killed(tmp_path: Path) -> None:
    with Supervisor(tmp_path / "logs") as supervisor:
        child = supervisor.start(program(tmp_path, 'trap "" TERM; echo up; while :; do sleep 0.05; done'))
        until(lambda: child.log.read_text())
        supervisor.stop(["it"], timeout=0.2)
        assert not alive(child.pid)
        assert child.state is ProgramState.STOPPED


def test_a_child_runs_with_the_requested_niceness(supervisor: Supervisor, tmp_path: Path) -> None:
    child = supervisor.start(program(tmp_path, "nice", nice=7, finite=True))
    until(lambda: child.state is ProgramState.ENDED, supervisor)
    assert int(child.log.read_text()) == os.nice(0) + 7


def test_nothing_survives_the_death_of_the_parent(tmp_path: Path) -> None:
    parent = f"""
import os, time
from pathlib import Path
from lozenge_deploy.supervision.supervisor import Program, Supervisor
with Supervisor(Path({str(tmp_path)!r})) as supervisor:
    child = supervisor.start(Program("it", ["sh", "-c", "sleep 600 & echo $!; wait"], lambda _: os.environ, Path("/")))
    while not child.log.read_text():
        time.sleep(0.02)
    print(child.pid, child.log.read_text().strip(), flush=True)
    time.sleep(600)
"""
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    with process.stdout:
        child, grandchild = map(int, process.stdout.readline().split())
        assert alive(child)
        assert alive(grandchild)
        process.kill()
        process.wait()
    until(lambda: not alive(child) and not alive(grandchild))

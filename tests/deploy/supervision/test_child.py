"""A child ends with its group, and its log says why it ended."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from lozenge.errors import ConfigError, UsageError
from lozenge.process.detached import LastError, last_error
from lozenge_deploy.supervision.child import Child
from tests.deploy.supervision.test_supervisor import alive, until

SERVING = LastError("serving metrics: no such port", "name one")
OF_JVM = '{"level": "error", "logger": "org.apache.spark", "event": "Aborted"}\n'


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def started(script: str, log: Path) -> Child:
    with log.open("ab") as file:
        return Child(["sh", "-c", script], stdout=file, stderr=subprocess.STDOUT)


@pytest.fixture
def stubborn(log: Path) -> Iterator[Child]:
    """A child that ignores SIGTERM, with a process of its own."""
    child = started('trap "" TERM; sleep 600 & echo $!; while :; do sleep 0.05; done', log)
    until(lambda: log.read_text().strip())
    yield child
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def test_a_regular_stop_has_the_exit_code_of_the_child(log: Path) -> None:
    child = started('trap "exit 7" TERM; echo up; while :; do sleep 0.05; done', log)
    until(lambda: log.read_text())
    child.terminate()
    assert (child.end(20.0), child.end(), child.poll()) == (7, 7, 7)


def test_after_the_grace_the_whole_group_is_killed(stubborn: Child, log: Path) -> None:
    grandchild = int(log.read_text())
    stubborn.terminate()
    assert stubborn.end(0.2) == -signal.SIGKILL
    until(lambda: not alive(grandchild))


def test_the_leash_of_an_ended_child_ends(log: Path) -> None:
    before = set(psutil.Process().children())
    child = started("exit 3", log)
    assert child.end(20.0) == 3
    assert set(psutil.Process().children()) <= before


@pytest.mark.parametrize("own_session", [False, True])
def test_a_group_ends_with_its_parent(tmp_path: Path, own_session: bool) -> None:
    script = f"""
import time
from pathlib import Path
from lozenge_deploy.supervision.child import Child
out = Path({str(tmp_path / "out")!r}).open("w")
child = Child(["sh", "-c", "sleep 600 & echo $!; wait"], stdout=out, own_session={own_session})
print(child.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        until(lambda: (tmp_path / "out").read_text().strip())
        grandchild = int((tmp_path / "out").read_text())
        parent.kill()
    until(lambda: not alive(child) and not alive(grandchild))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", LastError()),
        ("first\n12\n", LastError("12")),
        ('{"level": "info", "event": "query starts"}\n', LastError("query starts")),
        ('{"level": "error", "event": "no topic", "hint": "make it"}\nbye\n', LastError("no topic", "make it")),
        ('{"level": "critical", "event": "own"}\n' + OF_JVM + "[1]\n", LastError("own")),
        (OF_JVM + "Ended\n", LastError("Aborted")),
        ("first\n" + str(UsageError("serving metrics: no such port", hint="name one")) + "\n", SERVING),
        (
            "first\n" + str(ConfigError("reading it", problems=["a", "b"], hint="c")),
            LastError("reading it\n  - a\n  - b", "c"),
        ),
        ("first\n" + str(ConfigError("reading it", problems=["a"])), LastError("reading it\n  - a")),
        ("  - no message above", LastError("- no message above")),
    ],
)
def test_the_last_error_is_the_program_s_own_then_the_jvm_s_then_the_last_line(
    log: Path, text: str, error: LastError
) -> None:
    log.write_text(text)
    assert last_error(log) == error


def test_an_error_of_an_earlier_start_does_not_count(log: Path) -> None:
    log.write_text('{"level": "error", "event": "earlier"}\n')
    since = log.stat().st_size
    with log.open("a") as file:
        file.write("up\n")
    assert last_error(log, since) == LastError("up")


def test_without_a_log_there_is_no_error(log: Path) -> None:
    assert last_error(log) == LastError()

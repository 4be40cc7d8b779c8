"""A signal requests the end of a loop; a process that does not reach it ends all the same."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from lozenge.process.shutdown import OVERDUE, StopSignal

WORKS = """
import time
from lozenge.process import logging, shutdown

shutdown.STOP_SECONDS = 0.2
logging.configure("job")
asked = []
with shutdown.stopped_by_signals(lambda: asked.append(print("asked", flush=True)), "running spotter"):
    print("begun", flush=True)
    while {condition}:
        time.sleep(0.01)
    print("committed", flush=True)
"""


@pytest.fixture
def stop() -> Iterator[StopSignal]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield StopSignal()
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_requests_the_stop(stop: StopSignal, number: signal.Signals) -> None:
    assert not stop()
    os.kill(os.getpid(), number)
    assert stop()
    assert stop.requested


def test_a_signal_ends_the_wait(stop: StopSignal) -> None:
    timer = threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGTERM])
    timer.start()
    assert stop.wait(60)
    timer.join()


def test_a_wait_without_a_signal_ends_after_its_time(stop: StopSignal) -> None:
    assert not stop.wait(0.01)


@pytest.mark.parametrize(
    ("condition", "code", "said"),
    [("True", OVERDUE, ["asked"]), ("not asked", 0, ["asked", "committed"])],
    ids=["in the middle of a long batch", "at a boundary"],
)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_a_process_that_reaches_no_boundary_in_time_ends_without_a_commit(
    condition: str, code: int, said: list[str], number: signal.Signals
) -> None:
    command = [sys.executable, "-c", WORKS.format(condition=condition)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        try:
            output, errors = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, output.split()) == (code, said)
    assert ("running spotter: still running 0.2 s after the signal to stop" in errors) is (code == OVERDUE)

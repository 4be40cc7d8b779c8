"""A signal requests the end of a loop."""

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from lozenge.process.shutdown import StopSignal


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

"""A call is repeated while its dependency is away, for a time and at least so often."""

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
import stamina
from stamina.instrumentation import RetryDetails, set_on_retry_hooks

from lozenge.process.retries import retry


def failing(times: int, error: Exception) -> Callable[[], int]:
    """A call that raises `error` so often, and then returns how often it was made."""
    made = 0

    def call() -> int:
        nonlocal made
        made += 1
        if made <= times:
            raise error
        return made

    return call


def is_away(error: Exception) -> bool:
    return isinstance(error, ConnectionError)


@pytest.fixture(autouse=True)
def _without_pauses() -> Iterator[None]:
    with stamina.set_testing(True, attempts=100):
        yield


def test_a_call_is_repeated_while_its_dependency_is_away() -> None:
    assert retry(failing(3, ConnectionError()), is_away, seconds=60, pause=0.2) == 4


def test_an_error_that_is_not_retried_ends_the_retries() -> None:
    with pytest.raises(ValueError, match="no"):
        retry(failing(1, ValueError("no")), is_away, seconds=60, pause=0.2)


def test_the_last_error_is_raised_when_the_time_is_over() -> None:
    with pytest.raises(ConnectionError):
        retry(failing(1, ConnectionError()), is_away, seconds=0, pause=0.2)


def test_a_process_that_slept_calls_again_all_the_same() -> None:
    assert retry(failing(2, ConnectionError()), is_away, seconds=0, pause=0.2, attempts=3) == 3
    with pytest.raises(ConnectionError):
        retry(failing(3, ConnectionError()), is_away, seconds=0, pause=0.2, attempts=3)


@pytest.mark.parametrize(("drawn", "jitter"), [(0.0, 0.0), (0.7, 1.0)])
def test_pauses_are_as_long_as_given_with_a_random_part_of_the_jitter(
    monkeypatch: pytest.MonkeyPatch, drawn: float, jitter: float
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    monkeypatch.setattr("random.uniform", lambda least, most: drawn if (least, most) == (0, jitter) else 99.0)
    with stamina.set_testing(False):
        retry(failing(3, ConnectionError()), is_away, seconds=60, pause=0.2, jitter=jitter)
    assert slept == pytest.approx([0.2 + drawn] * 3)


def test_retries_are_neither_logged_nor_counted() -> None:
    seen: list[RetryDetails] = []

    def hook(details: RetryDetails) -> None:
        seen.append(details)

    set_on_retry_hooks([hook])
    retry(failing(1, ConnectionError()), is_away, seconds=60, pause=0.2)
    assert not seen
    code = (
        "import sys; from lozenge.process.retries import retry\n"
        "try: retry(lambda: 1 / 0, lambda error: True, seconds=0.05, pause=0.01)\n"
        "except ZeroDivisionError: print({'structlog', 'prometheus_client'} & sys.modules.keys())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("set()\n", "")

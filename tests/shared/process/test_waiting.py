"""A wait ends with its condition, with its time, or with an error of the condition."""

import time
from collections.abc import Iterator

import pytest

from lozenge.process.waiting import wait_until


def test_it_returns_once_the_condition_is_true() -> None:
    answers: Iterator[object] = iter([None, [], "yes"])
    assert wait_until(lambda: next(answers), 60, poll=0.001) is True
    assert list(answers) == []


def test_it_ends_when_its_time_is_over() -> None:
    assert wait_until(lambda: False, 0.02, poll=0.001) is False


def test_it_sleeps_no_longer_than_its_time() -> None:
    began = time.monotonic()
    assert wait_until(lambda: False, 0.02, poll=60) is False
    assert time.monotonic() - began < 30


def test_a_condition_is_checked_even_without_time() -> None:
    assert wait_until(lambda: True, 0) is True


def test_an_error_of_the_condition_ends_it() -> None:
    with pytest.raises(ZeroDivisionError):
        wait_until(lambda: 1 / 0, 60)

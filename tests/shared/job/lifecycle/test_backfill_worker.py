"""The thread that backfills: it rests as long as it works, and no error of it reaches the live query."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from lozenge.errors import Fenced
from lozenge.job.lifecycle import backfill_worker
from lozenge.job.lifecycle.backfill_worker import BackfillWorker
from lozenge.job.tools.backfill import BackfillStep
from lozenge.metrics.app_metrics import JobMetrics


class Work:
    """A backfill of steps without end, or one that raises."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error
        self.begun, self.ended = threading.Event(), threading.Event()

    def __call__(self, *_: object) -> Iterator[BackfillStep]:
        self.begun.set()
        try:
            while self._error is None:
                yield BackfillStep(events=3, alerts=2, dead_letters=0, remaining=1, expired=0)
            raise self._error
        finally:
            self.ended.set()


def worker(work: Work, monkeypatch: pytest.MonkeyPatch) -> tuple[BackfillWorker, JobMetrics]:
    monkeypatch.setattr(backfill_worker, "backfill", work)
    metrics, nothing = JobMetrics("one"), None
    loaded: Any = type("Loaded", (), {"name": "one"})
    made: Any = BackfillWorker
    return made(loaded, nothing, nothing, nothing, metrics), metrics


def test_it_counts_its_steps_and_ends_when_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work()
    backfills, metrics = worker(work, monkeypatch)
    backfills.start()
    assert work.begun.wait(5)
    backfills.stop()
    assert work.ended.wait(5)
    samples = metrics.snapshot()["samples"]
    assert samples["lozenge_emitted_total"] >= 2


@pytest.mark.parametrize("error", [Fenced("a newer process"), ValueError("the author's code")])
def test_an_error_ends_it_and_nothing_else(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(error)
    backfills, _ = worker(work, monkeypatch)
    with capture_logs() as lines:
        backfills.start()
        assert work.begun.wait(5)
        backfills.stop()  # waits for it
    [line] = lines
    assert ("fenced by a newer process" if isinstance(error, Fenced) else "the author's code") in line["event"]


def test_one_that_was_never_started_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    backfills, _ = worker(Work(), monkeypatch)
    backfills.stop()


def test_it_may_be_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work()
    backfills, _ = worker(work, monkeypatch)
    for _ in range(2):
        work.begun.clear()
        backfills.start()
        assert work.begun.wait(5)
        backfills.stop()

"""What the tests of a job's life cycle share."""

import pytest

from lozenge.job.lifecycle import job_watch


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is polled in every round, without a pause."""
    for name in ("STANDBY_POLL_SECONDS", "READINESS_POLL_SECONDS", "TABLE_POLL_SECONDS"):
        monkeypatch.setattr(job_watch, name, 0.0)
    monkeypatch.setattr(job_watch, "POLL_SECONDS", {})

"""Each periodic task has its interval, and one notifier reports what all of them share."""

import pytest

from lozenge.metrics.app_metrics import NotifierMetrics
from lozenge_downstream.lease_holder import RELAY, LeaseHolder
from lozenge_downstream.periodic_tasks import GAUGE_SECONDS, RETENTION_SECONDS, SILENCE_CHECK_SECONDS, PeriodicTasks
from lozenge_downstream.store.transaction import Transaction
from tests.downstream.conftest import Desk, MakeRecord

STARTED = 1_000.0
LIMITED = "lozenge_alerts_rate_limited{detector=large_amount}"


class Tasks:
    """The periodic tasks of a desk, by a notifier that holds the relay's lease."""

    def __init__(self, desk: Desk) -> None:
        self.metrics, self.leases = NotifierMetrics("test"), LeaseHolder(desk.store, "one", lease_seconds=60.0)
        self.leases.renew([RELAY])
        self._tasks = PeriodicTasks(
            desk.store, desk.pipeline, self.leases, self.metrics, keep_seconds=86_400.0, started=STARTED
        )

    def run(self, after: float, lag: int = 0) -> None:
        """Runs what is due so many seconds after the start."""
        self._tasks.run_due(STARTED + after, lambda: lag)


@pytest.fixture
def tasks(desk: Desk) -> Tasks:
    return Tasks(desk)


def test_silent_detectors_are_searched_for_once_a_minute_while_nothing_is_unread(
    desk: Desk, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches: list[Transaction] = []
    monkeypatch.setattr(desk.pipeline, "raise_silence_alarms", searches.append)
    counts = []
    for after, lag in [(0, 0), (59, 0), (60, 5), (61, 0), (62, 0), (120, 0), (121, 0)]:
        tasks.run(after, lag)
        counts.append(len(searches))
    assert SILENCE_CHECK_SECONDS == 60
    assert counts == [0, 0, 0, 1, 1, 1, 2]


def test_the_holder_of_the_relays_lease_alone_reports_what_waits(desk: Desk, tasks: Tasks, record: MakeRecord) -> None:
    def rate_limited() -> float | None:
        value: float | None = tasks.metrics.snapshot()["samples"].get(LIMITED)
        return value

    desk.routing(rate_limit={"alerts": 1, "within": "1m"})
    desk.take(*(record(number) for number in range(5)))
    tasks.run(0)
    assert rate_limited() == 4
    tasks.leases.give_up()
    tasks.run(GAUGE_SECONDS - 1)
    assert rate_limited() == 4
    tasks.run(GAUGE_SECONDS)
    assert rate_limited() is None


def test_the_steps_of_the_retention_follow_each_other_until_nothing_is_left(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    remaining, steps = [False, True, True], []

    def delete(_: Transaction, retention: object) -> bool:
        steps.append(retention)
        return remaining.pop()

    monkeypatch.setattr(Transaction, "delete_expired", delete)
    for after in (0, 1, 2, 3, RETENTION_SECONDS):
        tasks.run(after)
    assert len(steps) == 3
    assert len(set(map(id, steps))) == 1, "steps of one retention"
    remaining.append(False)
    tasks.run(RETENTION_SECONDS + 2)
    assert len(steps) == 4

"""A channel that does not deliver is reported to those that do."""

import pytest

from lozenge.metrics.app_metrics import NotifierMetrics
from lozenge_downstream.lease_holder import RELAY, LeaseHolder
from lozenge_downstream.periodic_tasks import ALARM_ATTEMPTS, GAUGE_SECONDS, PeriodicTasks
from lozenge_downstream.pipeline.channel_alarms import channel_alarms
from lozenge_downstream.store.deliveries import Attempt
from lozenge_downstream.store.tables import DUE, FAILED
from tests.downstream.conftest import Desk, MakeRecord

CHANNELS = {name: {"type": "kafka", "topic": name} for name in ("ops", "oncall")}
AT_THE_START = 0.0


class Reporting:
    """The periodic tasks of a desk whose alerts go to two channels."""

    def __init__(self, desk: Desk) -> None:
        desk.routing(channels=CHANNELS, route={"channels": ["oncall", "ops"]})
        self._desk, self._at = desk, AT_THE_START
        leases = LeaseHolder(desk.store, "one", lease_seconds=1e9)
        leases.renew([RELAY])
        metrics = NotifierMetrics("test")
        self._tasks = PeriodicTasks(desk.store, desk.pipeline, leases, metrics, keep_seconds=1e9, started=AT_THE_START)

    def later(self, seconds: float) -> list[str]:
        """The titles of all alarms, once so much time has passed."""
        self._desk.now += seconds
        self._at += max(seconds, GAUGE_SECONDS)
        self._tasks.run_due(self._at, lambda: 1)
        return [n["title"] for n in self._desk.notifications() if n["detector"] == "lozenge"]

    def attempt(self, state: str, error: str, times: int = 1) -> None:
        """Ends attempts of what is due on the on-call channel."""
        for _ in range(times):
            with self._desk.store.transaction() as t:
                for delivery in t.deliveries.due("oncall", 99):
                    t.deliveries.settle([Attempt(delivery, state, self._desk.now, error)])


@pytest.fixture
def reporting(desk: Desk) -> Reporting:
    return Reporting(desk)


def test_a_failed_message_is_reported_once_with_its_cause_and_the_way_out(
    desk: Desk, reporting: Reporting, record: MakeRecord
) -> None:
    desk.take(record())
    assert reporting.later(0) == []
    reporting.attempt(FAILED, "HTTP 400: 'summary' is missing")
    for _ in range(3):
        assert reporting.later(0) == ["channel oncall has failed messages"]
    alarm = desk.notifications()[-1]
    assert (alarm["subject"], alarm["severity"]) == ("channel:oncall", "high")
    assert "1 messages to oncall failed" in alarm["text"]
    assert "HTTP 400: 'summary' is missing" in alarm["text"]
    assert "`lozenge channels retry oncall`" in alarm["text"]
    assert ("ops", "due") in desk.deliveries(), "the other channel gets it"


def test_an_alarm_that_fails_itself_raises_no_further_one(desk: Desk, reporting: Reporting, record: MakeRecord) -> None:
    desk.take(record())
    reporting.attempt(FAILED, "HTTP 400")
    reporting.later(0)
    for _ in range(5):
        reporting.attempt(FAILED, "HTTP 400")
        assert len(reporting.later(900)) == 1


def test_a_disabled_channel_is_reported_once(desk: Desk, reporting: Reporting, record: MakeRecord) -> None:
    desk.take(record())
    with desk.store.transaction() as t:
        t.deliveries.disable("oncall", "HTTP 410: gone")
    assert reporting.later(0) == reporting.later(7_200) == ["channel oncall is disabled"]
    text = desk.notifications()[-1]["text"]
    assert ("HTTP 410: gone" in text, "`lozenge channels enable oncall`" in text) == (True, True)


def test_a_channel_whose_messages_fail_again_and_again_is_reported(
    desk: Desk, reporting: Reporting, record: MakeRecord
) -> None:
    desk.take(record())
    reporting.attempt(DUE, "HTTP 401", ALARM_ATTEMPTS - 1)
    assert reporting.later(0) == []
    reporting.attempt(DUE, "environment variable PD_KEY is not set")
    assert reporting.later(0) == reporting.later(0) == ["channel oncall does not deliver"]
    assert "environment variable PD_KEY is not set" in desk.notifications()[-1]["text"]
    assert reporting.later(3_600) == ["channel oncall does not deliver"] * 2, "once an hour while it lasts"


def test_a_channel_that_the_routing_file_no_longer_has_is_not_reported(
    desk: Desk, reporting: Reporting, record: MakeRecord
) -> None:
    desk.take(record())
    reporting.attempt(FAILED, "HTTP 400")
    desk.routing(channels={"ops": CHANNELS["ops"]}, route={"channels": ["ops"]})
    assert reporting.later(0) == []
    with desk.store.reading() as t:
        (trouble,) = t.deliveries.troubles(0.0, 1)
    assert list(channel_alarms([trouble], ["ops"], desk.now)) == []

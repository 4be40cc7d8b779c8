"""An alarm of the notifier is an alert that routes and people can take for one, raised once for what it is about."""

from datetime import UTC, datetime

from lozenge_downstream.model import HOUR
from lozenge_downstream.pipeline.alarms import DETECTOR, MAX_TEXT, alarm, hourly_id
from lozenge_downstream.routing.matchers import all_match, parse

AT = 1_772_366_400.0  # a full hour


def test_an_alarm_has_one_id_in_each_hour_and_others_for_other_matters() -> None:
    first = hourly_id(AT, "channel", "ops")
    assert hourly_id(AT + HOUR - 1, "channel", "ops") == first
    others = {
        hourly_id(AT + HOUR, "channel", "ops"),
        hourly_id(AT - 1, "channel", "ops"),
        hourly_id(AT, "channel", "oncall"),
        hourly_id(AT, "routing", "ops"),
    }
    assert len(others | {first}) == 5


def test_a_matter_in_two_words_is_another_than_in_one() -> None:
    assert hourly_id(AT, "a", "bc") != hourly_id(AT, "ab", "c")


def test_an_alarm_is_routed_by_labels_as_any_alert() -> None:
    raised = alarm("id", "channel", "ops", "channel_failing", "ops fails", "why", AT)
    for matcher in (
        f"detector = {DETECTOR}",
        "alarm = channel_failing",
        "severity >= high",
        "entity_type = channel",
        "entity = channel:ops",
    ):
        assert all_match((parse(matcher),), raised.labels), matcher
    assert not all_match((parse("entity = channel:chat"),), raised.labels)
    assert (raised.subject, raised.severity, raised.release) == ("channel:ops", "high", "")
    assert raised.event_time == datetime.fromtimestamp(AT, UTC)


def test_the_text_of_an_alarm_is_bounded_and_its_trace_is_that_of_its_id() -> None:
    long = alarm("one", "routing", "f", "routing_invalid", "t", "x" * 100_000, AT)
    assert len(long.text) == MAX_TEXT
    assert long.text.endswith("...")
    again, other = (alarm(id, "routing", "f", "routing_invalid", "t", "", AT + 9) for id in ("one", "two"))
    assert again.traceparent == long.traceparent != other.traceparent

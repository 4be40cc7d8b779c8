"""How old the oldest record is that waits."""

from lozenge_deploy.observe.group_lag import oldest_age

NOW = 1_772_366_400.0


def test_the_oldest_record_that_waits_says_how_late_its_group_is() -> None:
    assert oldest_age([NOW - 5, NOW - 60, NOW], NOW) == 60
    assert oldest_age([], NOW) == 0


def test_a_kafka_timestamp_in_another_unit_says_nothing_about_the_lag() -> None:
    in_seconds, in_microseconds, without_a_clock = NOW / 1000, NOW * 1000, -0.001
    assert oldest_age([in_seconds, in_microseconds, without_a_clock, 0.0], NOW) == 0
    assert oldest_age([in_seconds, in_microseconds, NOW - 7], NOW) == 7

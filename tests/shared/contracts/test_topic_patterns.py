"""A platform recognises its own alert topics and dead-letter topics among those of a broker."""

import re

import pytest

from lozenge.contracts.topic_patterns import (
    alert_topics,
    app_of_dead_letters,
    detector_of,
    event_topics,
    job_of_state,
    names_people,
)
from lozenge.contracts.topics import Topics

PLAIN = Topics()
OTHER = Topics(prefix="team-a.", partitions=7)


@pytest.mark.parametrize("topics", [PLAIN, OTHER])
def test_the_alert_pattern_matches_the_platforms_live_detectors_alone(topics: Topics) -> None:
    assert re.match(alert_topics(topics), topics.detector("large_amount").alerts)
    others = [Topics("team-ax"), Topics("team-a"), Topics("x"), PLAIN if topics is OTHER else OTHER]
    strangers = [topics.shadow("large_amount", "r7+ab").alerts, *(other.detector("a").alerts for other in others)]
    assert not [name for name in strangers if re.match(alert_topics(topics), name)]


@pytest.mark.parametrize("topics", [PLAIN, OTHER])
def test_an_alert_topic_names_its_detector(topics: Topics) -> None:
    assert detector_of(topics, topics.detector("card_velocity").alerts) == "card_velocity"
    for stranger in (topics.events("auth"), Topics("x").detector("card_velocity").alerts):
        with pytest.raises(ValueError, match="not an alert topic"):
            detector_of(topics, stranger)


@pytest.mark.parametrize("topics", [PLAIN, OTHER])
def test_a_dead_letter_topic_names_its_app(topics: Topics) -> None:
    for app in ("upstream", "upstream-login", "large_amount"):
        assert app_of_dead_letters(topics, topics.dead_letters(app)) == app
    shadow = topics.dead_letters(topics.shadow("large_amount", "r7").name)
    strangers = (topics.events("auth"), shadow, Topics("x").dead_letters("upstream"))
    assert [app_of_dead_letters(topics, name) for name in strangers] == [None] * 3


@pytest.mark.parametrize("topics", [PLAIN, OTHER])
def test_events_by_a_key_may_be_a_copy_or_a_streams_own_or_merged(topics: Topics) -> None:
    copy, own, merged = topics.events("auth", "account"), topics.events("login"), topics.merged("account")
    of_another_key = [topics.merged("card"), topics.events("auth", "card")]
    others = [topics.detector("x").alerts, Topics("x").merged("account")]
    assert event_topics(topics, [merged, *of_another_key, copy, own, *others], "account") == [copy, own, merged]


@pytest.mark.parametrize("topics", [PLAIN, OTHER])
def test_the_job_of_a_state_is_a_detector_or_a_shadow_release(topics: Topics) -> None:
    assert job_of_state(topics, topics.detector("large_amount").state) == "large_amount"
    assert job_of_state(topics, topics.shadow("large_amount", "dev-1").state) == "large_amount.dev-1"
    for other in (topics.detector("large_amount").changelog, topics.logs, Topics("x").detector("a").state):
        assert job_of_state(topics, other) is None


@pytest.mark.parametrize("topics", [PLAIN, OTHER])
def test_every_topic_of_the_platform_that_is_not_compacted_and_has_records_may_name_people(topics: Topics) -> None:
    detector, shadow = topics.detector("large_amount"), topics.shadow("large_amount", "dev-1")
    named = [topics.events("auth"), topics.events("auth", "terminal"), topics.merged("account"), detector.alerts]
    named += [shadow.alerts, detector.changelog, topics.notifications, topics.feedback, topics.dead_letters("upstream")]
    named += [topics.logs, topics.control.audit.name]
    assert all(names_people(topics, topic) for topic in named)
    others = [detector.coverage, detector.state, topics.metrics, topics.control.releases, topics.resolutions("a").name]
    assert not any(names_people(topics, topic) for topic in [*others, Topics("x").detector("a").alerts])

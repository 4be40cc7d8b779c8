"""Topic names and contracts of a platform."""

import re

import pytest

from lozenge.contracts.topics import EVENT_RETENTION, PREFIX_PATTERN, Topic, Topics, shadow_name

PLAIN = Topics()
OTHER = Topics(prefix="team-a.", partitions=7)


def every_topic(topics: Topics) -> list[Topic]:
    return [
        *topics.platform_topics(("terminal", "merchant")),
        *topics.detector_topics("large_amount"),
        *topics.shadow_topics("large_amount", "1.0.0+ab12/x"),
        topics.resolution_topic("large_amount"),
    ]


@pytest.mark.parametrize("topics", [PLAIN, OTHER])
def test_the_alert_pattern_matches_the_platforms_live_detectors_alone(topics: Topics) -> None:
    assert re.match(topics.alerts_pattern, topics.alerts("large_amount"))
    others = [Topics("team-ax"), Topics("team-a"), Topics("x"), PLAIN if topics is OTHER else OTHER]
    strangers = [topics.shadow_alerts("large_amount", "r7+ab"), *(other.alerts("a") for other in others)]
    assert not [name for name in strangers if re.match(topics.alerts_pattern, name)]


@pytest.mark.parametrize("topics", [PLAIN, OTHER])
def test_an_alert_topic_names_its_detector(topics: Topics) -> None:
    assert topics.detector_of(topics.alerts("card_velocity")) == "card_velocity"
    for stranger in (topics.events, Topics("x").alerts("card_velocity")):
        with pytest.raises(ValueError, match="not an alert topic"):
            topics.detector_of(stranger)


@pytest.mark.parametrize("topics", [PLAIN, OTHER])
def test_a_dead_letter_topic_names_its_app(topics: Topics) -> None:
    assert topics.app_of_dead_letters(topics.dead_letters("upstream")) == "upstream"
    shadow = topics.dead_letters(shadow_name("large_amount", "r7"))
    strangers = (topics.events, shadow, Topics("x").dead_letters("upstream"))
    assert [topics.app_of_dead_letters(name) for name in strangers] == [None] * 3


@pytest.mark.parametrize("topics", [PLAIN, OTHER, Topics("p" * 64)])
def test_every_name_is_legal_and_given_once(topics: Topics) -> None:
    names = [topic.name for topic in every_topic(topics)]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name) for name in names)


def test_two_platforms_share_a_broker_and_no_topic() -> None:
    assert re.fullmatch(PREFIX_PATTERN, OTHER.prefix)
    assert {f"team-a.{topic.name}" for topic in every_topic(PLAIN)} == {topic.name for topic in every_topic(OTHER)}
    assert not {topic.name for topic in every_topic(PLAIN)} & {topic.name for topic in every_topic(OTHER)}


def test_what_is_keyed_as_events_has_the_platforms_partitions() -> None:
    keyed = {
        OTHER.raw_json,
        OTHER.raw_iso,
        OTHER.events,
        OTHER.events_by("terminal"),
        OTHER.notifications,
        OTHER.feedback,
        OTHER.dead_letters("upstream"),
        OTHER.dead_letters("downstream"),
        OTHER.alerts("x"),
        OTHER.dead_letters("x"),
        OTHER.state("x"),
    }
    declared = {t.name: t.partitions for t in [*OTHER.platform_topics(), *OTHER.detector_topics("x")]}
    assert {name for name, partitions in declared.items() if partitions == 7} == keyed


def test_state_is_compacted() -> None:
    state = next(t for t in PLAIN.detector_topics("x") if t.name == PLAIN.state("x"))
    assert state.config["cleanup.policy"] == "compact"


def test_events_are_kept_for_the_declared_time() -> None:
    events = next(t for t in PLAIN.platform_topics() if t.name == PLAIN.events)
    assert events.config["retention.ms"] == str(round(EVENT_RETENTION.total_seconds() * 1000))

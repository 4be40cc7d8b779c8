"""Topic names and contracts of a platform."""

import re

import pytest

from lozenge.apps import is_stage, is_upstream
from lozenge.contracts.topic_patterns import is_written_by_platform, name_of_list, name_of_table
from lozenge.contracts.topics import (
    PREFIX_PATTERN,
    Topic,
    Topics,
    platform_table,
    reference_list,
)
from lozenge.streams.merged import merged_topics
from lozenge_deploy.releases.lint.names import name_problem
from tests.streams import AUTH, RAW_ISO, RAW_JSON

PLAIN = Topics()
OTHER = Topics(prefix="team-a.", partitions=7)


def every_topic(topics: Topics) -> list[Topic]:
    return [
        *topics.platform_topics(),
        *AUTH.topics(topics, ("terminal", "merchant")),
        *merged_topics(topics, [AUTH], ("account", "card")),
        *topics.detector("large_amount").contracts(),
        *topics.shadow("large_amount", "1.0.0+ab12/x").contracts(),
        topics.resolutions("large_amount"),
        reference_list(topics, "blocked_cards"),
        platform_table(topics, "limits"),
    ]


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
        OTHER.prefixed(RAW_JSON),
        OTHER.prefixed(RAW_ISO),
        OTHER.events("auth"),
        OTHER.events("auth", "terminal"),
        OTHER.notifications,
        OTHER.feedback,
        OTHER.dead_letters("upstream"),
        OTHER.dead_letters("downstream"),
        OTHER.detector("x").alerts,
        OTHER.dead_letters("x"),
        OTHER.detector("x").state,
    }
    declared = {
        t.name: t.partitions
        for t in [*OTHER.platform_topics(), *AUTH.topics(OTHER, AUTH.copies), *OTHER.detector("x").contracts()]
    }
    assert {name for name, partitions in declared.items() if partitions == 7} == keyed


def test_state_is_compacted() -> None:
    state = next(t for t in PLAIN.detector("x").contracts() if t.name == PLAIN.detector("x").state)
    assert state.config["cleanup.policy"] == "compact"


@pytest.mark.parametrize("topics", [PLAIN, OTHER])
def test_the_list_in_a_topic_has_a_name_and_nothing_else_is_a_list(topics: Topics) -> None:
    assert name_of_list(topics, reference_list(topics, "blocked_cards").name) == "blocked_cards"
    others = [each.name for each in every_topic(topics) if name_of_list(topics, each.name) is None]
    assert len(others) == len(every_topic(topics)) - 1
    assert name_of_list(PLAIN, reference_list(OTHER, "blocked_cards").name) is None


def test_no_topic_of_the_platform_holds_raw_records() -> None:
    others = {each.name for each in every_topic(PLAIN) if not is_written_by_platform(each.name)}
    assert others == {*AUTH.raw_topics}
    assert not is_written_by_platform("pay.raw.orders")


def test_the_table_in_a_topic_has_a_name_and_no_list_is_a_table() -> None:
    assert name_of_table(PLAIN, platform_table(PLAIN, "limits").name) == "limits"
    assert name_of_table(PLAIN, reference_list(PLAIN, "limits").name) is None
    assert name_of_list(PLAIN, platform_table(PLAIN, "limits").name) is None


def test_what_a_list_was_can_be_read_for_as_long_as_any_record_read_with_it() -> None:
    config = reference_list(PLAIN, "blocked_cards").config
    read = (PLAIN.events("auth"), PLAIN.dead_letters("upstream"))
    kept = [
        int(topic.config["retention.ms"])
        for topic in [*PLAIN.platform_topics(), *AUTH.topics(PLAIN, ())]
        if topic.name in read
    ]
    assert config["cleanup.policy"] == "compact"
    assert int(config["min.compaction.lag.ms"]) > max(kept)


def test_events_are_kept_for_the_declared_time() -> None:
    events = next(t for t in AUTH.topics(PLAIN, ()) if t.name == PLAIN.events("auth"))
    assert events.config["retention.ms"] == str(round(AUTH.retention.total_seconds() * 1000))


def test_no_detector_has_the_name_of_a_normaliser() -> None:
    assert [is_upstream(app) for app in ("upstream", "upstream-login", "downstream", "upstream_login")] == [
        *(True, True),
        *(False, False),
    ]
    assert [is_stage(app) for app in ("upstream-login", "downstream", "large_amount")] == [True, True, False]
    assert name_problem("upstream-login")

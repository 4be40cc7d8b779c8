"""Topic names and contracts."""

import re

import pytest

from lozenge import topics


def test_the_alert_pattern_takes_live_detectors_and_nothing_beside_them() -> None:
    assert re.match(topics.ALERTS_PATTERN, topics.alerts("large_amount"))
    assert not re.match(topics.ALERTS_PATTERN, topics.shadow_alerts("large_amount", "r7+ab"))
    assert not re.match(topics.ALERTS_PATTERN, "xpay.alerts.a.v1")


def test_an_alert_topic_names_its_detector() -> None:
    assert topics.detector_of(topics.alerts("card_velocity")) == "card_velocity"
    with pytest.raises(ValueError, match="not an alert topic"):
        topics.detector_of(topics.EVENTS)


def test_every_name_is_legal_and_given_once() -> None:
    declared = [
        *topics.platform_topics(("terminal", "merchant")),
        *topics.detector_topics("large_amount"),
        *topics.shadow_topics("large_amount", "1.0.0+ab12/x"),
    ]
    names = [topic.name for topic in declared]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name) for name in names)


def test_state_is_partitioned_like_its_input_and_compacted() -> None:
    state = next(t for t in topics.detector_topics("x") if t.name == topics.state("x"))
    assert state.partitions == topics.EVENT_PARTITIONS
    assert state.config["cleanup.policy"] == "compact"

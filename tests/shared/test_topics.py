"""Topic names and contracts."""

import os
import re
import subprocess
import sys

import pytest

from lozenge.contracts import topics


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


def declared_partitions(given: str) -> "subprocess.CompletedProcess[str]":
    """A process that is told so, and says how many partitions raw topics and those of events have."""
    program = "from lozenge.contracts import topics; print(topics.RAW_PARTITIONS, topics.EVENT_PARTITIONS)"
    environment = os.environ | {topics.PARTITIONS_VARIABLE: given}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)


def test_a_platform_may_begin_with_another_number_of_partitions() -> None:
    assert declared_partitions("64").stdout == "64 64\n"


@pytest.mark.parametrize("given", ["0", "-4", "many", "1025", "", "²"])
def test_a_wrong_number_of_partitions_is_refused_in_a_line(given: str) -> None:
    refused = declared_partitions(given)
    assert refused.returncode == 2
    assert refused.stderr == f"LOZENGE_PARTITIONS is {given!r}: it must be a whole number from 1 to 1024\n"

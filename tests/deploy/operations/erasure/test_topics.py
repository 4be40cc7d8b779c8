"""When a topic has forgotten what it has now, by its configuration."""

from datetime import UTC, datetime, timedelta

import pytest

from lozenge_deploy.operations.erasure.receipt import Outcome
from lozenge_deploy.operations.erasure.topics import DELETION, line_of

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DAY_MS = str(86_400_000)
WEEK = {"cleanup.policy": "delete", "retention.ms": str(7 * 86_400_000), "segment.ms": DAY_MS}


def test_a_record_is_gone_when_the_newest_of_its_segment_is_old_enough() -> None:
    line = line_of("events", WEEK, NOW, raw=())
    assert (line.outcome, line.until) == (Outcome.EXPIRES, NOW + timedelta(days=8) + DELETION)
    assert "otherwise" in line_of("raw", WEEK, NOW, raw={"raw"}).what


@pytest.mark.parametrize("present", [WEEK | {"retention.ms": "-1"}, WEEK | {"cleanup.policy": "compact"}])
def test_a_topic_that_forgets_nothing_is_not_done(present: dict[str, str]) -> None:
    line = line_of("events", present, NOW, raw=())
    assert (line.outcome, line.until) == (Outcome.NOT_DONE, None)
    assert "retention.ms" in line.what

"""Topics whose records nobody can remove: each record is gone when the retention of its topic is over."""

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from lozenge.contracts.topic_patterns import names_people
from lozenge.kafka.topic_admin import configurations, partitions
from lozenge_deploy.operations.erasure.plan import Plan
from lozenge_deploy.operations.erasure.receipt import Line, Outcome

DELETION = timedelta(minutes=10)
"""How long a broker may take to see that a segment is old (five minutes) and to delete its file (one)."""


def expiring(plan: Plan, now: datetime | None = None) -> Iterator[Line]:
    """A line for each topic with raw records, events, alerts, messages, dead letters or logs; NOT_DONE if for ever."""
    topics, now = plan.kafka.topics, now or datetime.now(UTC)
    raw = {topics.prefixed(topic) for stream in plan.streams.definitions for topic in stream.raw_topics}
    there = sorted(topic for topic in partitions(plan.kafka) if topic in raw or names_people(topics, topic))
    for topic, present in configurations(plan.kafka, there).items():
        yield line_of(topic, present, now, raw)


def line_of(topic: str, present: Mapping[str, str], now: datetime, raw: Collection[str]) -> Line:
    """When what a topic has now is gone at the latest, by its configuration.

    A segment is deleted as a whole, once its newest record is old enough; it gets records for `segment.ms`.
    """
    kept, segment = int(present["retention.ms"]), int(present["segment.ms"])
    if "delete" not in present["cleanup.policy"] or kept < 0:
        what = "its records are kept for ever: set its retention.ms, and run this again"
        return Line(f"topic {topic}", Outcome.NOT_DONE, what=what)
    until = now + timedelta(milliseconds=kept) + timedelta(milliseconds=segment) + DELETION
    what = "raw records, which may name the person otherwise" if topic in raw else "what it has now"
    return Line(f"topic {topic}", Outcome.EXPIRES, what=what, until=until)

"""Which release of a stream was in force from which raw offsets on, as the coverage of upstream has it."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from lozenge.contracts.record import format_positions
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.topic_reader import bounds, read_log
from lozenge.protocol.coverage import STARTED, CoverageSegment

Since = dict[str, dict[int, int]]
"""Raw offsets by topic and partition."""


class ReleaseChange(NamedTuple):
    """From `since` on another release than before has processed the partitions of a raw topic."""

    at: float
    release: str
    digest: str
    topic: str
    since: dict[int, int]


def coverage_end(kafka: KafkaSettings, app: str) -> int:
    """The end of the coverage topic of a normaliser: what begins from now on has a segment there or later."""
    topic = kafka.topics.detector(app).coverage
    return bounds(kafka, topic, 1)[0][1] if topic in partitions(kafka) else 0


def segments_since(kafka: KafkaSettings, app: str, offset: int = 0) -> list[CoverageSegment]:
    """The segments of a normaliser from that offset of their topic on; raises BrokerUnavailable."""
    return read_log(kafka, kafka.topics.detector(app).coverage, CoverageSegment, offset)


def begun(segments: Iterable[CoverageSegment], release: str) -> Since:
    """From which offsets on the `segments` have that release, where they have it first."""
    found: Since = {}
    for segment in segments:
        if segment.reason == STARTED and segment.release == release:
            found[segment.topic] = dict(segment.since) | found.get(segment.topic, {})
    return found


def changes(segments: Iterable[CoverageSegment]) -> Iterator[ReleaseChange]:
    """Every change of the release or of its files, in order; restarts of one are none."""
    present: dict[tuple[str, int], tuple[str, str]] = {}
    for segment in segments:
        if segment.reason != STARTED:
            continue
        id = segment.release, segment.digest
        since = {p: o for p, o in segment.since.items() if present.get((segment.topic, p)) != id}
        present |= {(segment.topic, partition): id for partition in segment.since}
        if since:
            yield ReleaseChange(segment.at, *id, segment.topic, since)


def last_since(found: Iterable[ReleaseChange]) -> dict[str, Since]:
    """From which offsets on each release was last in force, by its name."""
    last: dict[str, Since] = {}
    for change in found:
        topics = last.setdefault(change.release, {})
        topics[change.topic] = topics.get(change.topic, {}) | change.since
    return last


def change_rows(found: Iterable[ReleaseChange]) -> list[dict[str, Any]]:
    """One row for each change, for people."""
    return [
        {
            "at": f"{datetime.fromtimestamp(each.at, UTC):%Y-%m-%d %H:%M:%S}",
            "release": each.release or None,
            "digest": each.digest or None,
            "topic": each.topic,
            "since": format_positions(sorted(each.since.items())),
        }
        for each in found
    ]


def since_text(since: Mapping[str, Mapping[int, int]]) -> str:
    """ "AUTH-JSON 0:120 1:88"; topics are separated by semicolons."""
    return "; ".join(f"{topic} {format_positions(sorted(of.items()))}" for topic, of in sorted(since.items()))

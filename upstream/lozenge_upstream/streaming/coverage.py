"""Which release of a stream has processed which raw records: a segment for each raw topic whenever a query begins.

The segments are in a topic as a detector's are. They outlive the group's offsets, so that a start notices offsets that
have expired, or were moved by another tool while no instance ran.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from confluent_kafka import Message

from lozenge.contracts.avro import Codec
from lozenge.contracts.dead_letters import RAW_POSITION
from lozenge.contracts.record import Partition
from lozenge.errors import DecodeError
from lozenge.kafka.schema_topic import learn
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import topic_id
from lozenge.kafka.topic_reader import bounds, read_log, tail
from lozenge.kafka.writers import AcknowledgedWriter
from lozenge.process.logging import logger
from lozenge.protocol.coverage import OFFSETS_RESET, STARTED, CoverageSegment, newest
from lozenge.protocol.stream_releases import ReleaseId
from lozenge_upstream.normalise.output_records import StreamOutput
from lozenge_upstream.streaming.start_offsets import CommittedRaw, moved_by_others, start_offsets

_TAIL = 100
"""How many of the newest output records of a partition show how far upstream had come."""
_NONE = ReleaseId("", "")


class RawCoverage:
    """Reads and writes the coverage of upstream, which runs `release`. Every method raises BrokerUnavailable."""

    def __init__(self, kafka: KafkaSettings, target: StreamOutput, release: ReleaseId) -> None:
        self._kafka, self._target, self._release = kafka, target, release
        self._topic = target.coverage

    def begin(self, committed: Mapping[str, Mapping[int, CommittedRaw]]) -> dict[str, dict[int, int]]:
        """The offset at which each partition resumes; it is recorded that upstream processes from there on.

        Offsets that another tool has moved are recorded with the gap or the repetition that this makes. Raises
        OffsetsLost where raw records to read next are gone.
        """
        segments = read_log(self._kafka, self._topic, CoverageSegment)
        starts, new = {}, list[CoverageSegment]()
        for topic, partitions in committed.items():
            known, input_id = newest([s for s in segments if s.topic == topic]), topic_id(self._kafka, topic)
            starts[topic] = start_offsets(self._target.app, topic, partitions, known, input_id)
            if moved := moved_by_others(partitions, known):
                assert known is not None
                new.append(self._moved(topic, input_id, known, {p: starts[topic][p] for p in moved}))
            new.append(_segment(STARTED, topic, input_id, starts[topic], starts[topic], of=self._release))
        AcknowledgedWriter(self._kafka).write([segment.record(self._topic) for segment in new])
        return starts

    def last_releases(self) -> dict[Partition, ReleaseId]:
        """The release that last began to process each raw partition."""
        segments = read_log(self._kafka, self._topic, CoverageSegment)
        return {
            (segment.topic, partition): ReleaseId(segment.release, segment.digest)
            for segment in segments
            if segment.reason == STARTED
            for partition in segment.since
        }

    def _moved(self, topic: str, input_id: str, known: CoverageSegment, moved: Mapping[int, int]) -> CoverageSegment:
        app, written = self._target.app, self._written_until()
        ended = {p: max(known.since[p], written.get((topic, p), 0)) for p in moved}
        logger().error(
            f"the offsets of {topic} were moved by another tool while {app} did not run; it resumes there",
            processed_until=ended,
            resumes_at=dict(moved),
            hint=f"`lozenge coverage {app}` shows the gap or the repetition; `lozenge offsets {app}` moves them",
        )
        return _segment(OFFSETS_RESET, topic, input_id, ended, moved, by="another tool")

    def _written_until(self) -> dict[Partition, int]:
        """The offset after the highest raw one among the newest output records, by raw partition."""
        found: dict[Partition, int] = {}
        schema = self._target.stream.event_schema
        codec = Codec(schema, learn(self._kafka, schema))

        def of_event(message: Message) -> tuple[str, int, int]:
            raw = codec.decode(message.value())["raw"]
            return raw["topic"], raw["partition"], raw["offset"]

        for topic, origin in ((self._target.events, of_event), (self._target.dead_letters, _origin_of_dead_letter)):
            ranges = bounds(self._kafka, topic, self._kafka.topics.partitions)
            for raw, partition, offset in _origins(tail(self._kafka, topic, ranges, _TAIL), origin):
                found[raw, partition] = max(found.get((raw, partition), 0), offset + 1)
        return found


def _segment(
    reason: str,
    topic: str,
    input_id: str,
    ended: Mapping[int, int],
    since: Mapping[int, int],
    by: str = "",
    of: ReleaseId = _NONE,
) -> CoverageSegment:
    return CoverageSegment(reason, *of, 0, dict(ended), dict(since), input_id=input_id, topic=topic, by=by)


def _origins(messages: Iterable[Message], origin: Any) -> Iterator[tuple[str, int, int]]:
    for message in messages:
        try:
            yield origin(message)
        except (DecodeError, KeyError, ValueError):  # a record of another writer
            continue


def _origin_of_dead_letter(message: Message) -> tuple[str, int, int]:
    headers = dict(message.headers() or ())
    topic, partition, offset = (headers[RAW_POSITION] or b"").decode().rsplit("/", 2)  # type: ignore[union-attr]
    return topic, int(partition), int(offset)

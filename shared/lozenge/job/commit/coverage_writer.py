"""The coverage of one job: what earlier jobs of its detector processed, and the segments that it adds itself."""

from collections.abc import Collection, Mapping

import msgspec

from lozenge.contracts.record import Record
from lozenge.job.commit.resume_offsets import refuse_recreated_topic, within
from lozenge.job.identity import Identity
from lozenge.kafka.group_offsets import Positions
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import topic_id
from lozenge.kafka.topic_reader import read_log
from lozenge.process.logging import logger
from lozenge.protocol.coverage import OFFSETS_RESET, CoverageSegment, Versions, newest, processed_offsets


class CoverageWriter:
    """Makes the records of coverage segments; a claim or a commit writes them in its own transaction.

    `newest` is the newest segment, of whichever job; None if the detector never ran, or has no coverage. Only a live
    job has one.
    """

    def __init__(self, kafka: KafkaSettings, identity: Identity) -> None:
        self._kafka, self._identity = kafka, identity
        self._input_id = ""
        self.newest: CoverageSegment | None = None

    def read(self, *, any_topic: bool = False, again: bool = False) -> None:
        """Reads the newest segment, once or `again`.

        Raises OffsetsLost if the input was created again since that segment, unless `any_topic` will do; raises
        BrokerUnavailable.
        """
        if self._identity.coverage is None or (self._input_id and not again):
            return
        self.newest = newest(read_log(self._kafka, self._identity.coverage, CoverageSegment))
        self._input_id = topic_id(self._kafka, self._identity.input)
        if not any_topic:
            refuse_recreated_topic(self._identity.app, self._identity.input, self.newest, self._input_id)

    def segment(
        self,
        reason: str,
        versions: Versions,
        generation: int,
        before: Positions,
        since: Mapping[int, int],
        *,
        shared: bool,
    ) -> CoverageSegment:
        """The segment of a job that processes from `since` on, where the one before it had come to `before`."""
        return CoverageSegment(
            reason=reason,
            release=self._identity.release,
            digest=versions.settings,
            tables=versions.tables,
            generation=generation,
            ended=processed_offsets(before.offsets, before.missing, self.newest),
            since=dict(since),
            input_id=self._input_id,
            shared=shared,
        )

    def moved_by_others(self, generation: int, before: Positions) -> CoverageSegment | None:
        """The segment of offsets that another tool has moved since a job last committed; None where it moved none.

        How far the job had come is in no commit any more, so this promises no more than where it had started.
        """
        known = self.newest
        moved = {p: before.offsets[p] for p in sorted(before.moved) if known is not None and p in known.since}
        if known is None or not moved:
            return None
        ended = processed_offsets(moved, moved, known)
        logger().error(
            f"the offsets of {self._identity.app} were moved by another tool; it resumes there",
            processed_since=ended,
            resumes_at=moved,
            hint=f"`lozenge coverage {self._identity.app}` shows the gap or the repetition; `lozenge offsets "
            f"{self._identity.app}` moves offsets with their state",
        )
        return CoverageSegment(
            OFFSETS_RESET, "", "", generation, ended, moved, input_id=self._input_id, by="another tool"
        )

    def records(self, segment: CoverageSegment, partitions: Collection[int]) -> list[Record]:
        """The part of `segment` that is about `partitions`; nothing where it is about none, or no coverage is kept."""
        if self._identity.coverage is None:
            return []
        ended, since = within(segment.ended, partitions), within(segment.since, partitions)
        if not since:
            return []
        return [msgspec.structs.replace(segment, ended=ended, since=since).record(self._identity.coverage)]

    def written(self, segment: CoverageSegment) -> None:
        """`segment` is committed."""
        if self._identity.coverage is not None:
            self.newest = segment

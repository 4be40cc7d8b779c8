"""A rule as a process without Spark: everything around its detection is what `lozenge.job` runs.

It loads the detector, obeys its orders, reports, shares partitions, claims them, and commits alerts and offsets in one
transaction per batch, on a real broker. What it detects is in `sparkless_rule`.

Usage: `python -m tests.deploy.sparkless_job FOLDER`, started as the agent starts a job. Exit codes as those of the job.
"""

import sys
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from lozenge.contracts.record import Record
from lozenge.contracts.topics import Topics
from lozenge.detector.loader import LoadedDetector, find
from lozenge.errors import ConfigError, LozengeError
from lozenge.job.commit.alert_encoder import AlertEncoder
from lozenge.job.effective_config import EffectiveConfig, JobSpecFile
from lozenge.job.identity import Identity
from lozenge.job.lifecycle.partition_assignment import PartitionAssignment
from lozenge.job.lifecycle.status_reporter import JobStatusReporter
from lozenge.job.settings import JobSettings
from lozenge.kafka.group_offsets import ConsumerGroup, refuse_if_stale
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import topic_id
from lozenge.kafka.topic_reader import read_log
from lozenge.kafka.writers import PartitionWriters
from lozenge.process import logging
from lozenge.process.env_settings import load
from lozenge.process.shutdown import end, stopped_by_signals
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.protocol.coverage import RECONFIGURED, STARTED, CoverageSegment, Versions, newest
from lozenge.protocol.job_spec import JobSpec
from lozenge.protocol.job_status import JobPhase
from tests.deploy.sparkless_rule import draft_alerts

TOPICS = Topics()


class SparklessJob:
    """Runs from its first order until `stop`, as the newest order says."""

    def __init__(self, loaded: LoadedDetector, job: JobSettings, kafka: KafkaSettings) -> None:
        self._loaded, self._kafka = loaded, kafka
        self._spec_file = JobSpecFile(job)
        self._spec = self._spec_file.current
        self._config = EffectiveConfig.of(loaded, self._spec)
        self._identity = Identity.of(loaded, job, kafka.topics)
        self._reporter = JobStatusReporter(job.folder)
        self._group = ConsumerGroup(kafka, self._identity.app, self._identity.input, TOPICS.partitions)
        self._writers = PartitionWriters(kafka, self._identity.app)
        self._assignment = PartitionAssignment(kafka, self._identity)
        self._shared = False
        self._consumer = Consumer(kafka.client(group_id=f"{self._identity.app}-reads", enable_auto_commit=False))
        self._offsets: dict[int, int] = {}
        self._stamp = CommitMetadata(0)
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Ends `run` behind the present batch."""
        self._stopped.set()

    def run(self) -> None:
        """Raises what ends a job."""
        first, digest = self._spec, self._config.settings.digest
        logging.logger().info("query starts")
        phase = JobPhase.STANDBY if first.standby else JobPhase.STARTING
        self._reporter.update(session_started_at=time.time(), generation=first.generation)
        self._reporter.query_started(phase, first.revision, Versions(digest), self._group.glance().offsets)
        if first.standby:
            self._reporter.update(phase=JobPhase.READY)
        else:
            self._claim(first.generation)
        while not self._stopped.is_set():
            if (new := self._spec_file.newer()) is not None:
                self._obey(new)
            if self._spec.standby:
                self._stopped.wait(0.05)
            else:
                if self._spec.shared and self._assignment.changed:
                    self._claim(self._stamp.generation)
                self._process()
            self._reporter.progressed()
        self._assignment.leave()
        self._consumer.close()
        self._group.close()

    def _obey(self, new: JobSpec) -> None:
        before, self._spec = self._spec, new
        try:
            self._config = EffectiveConfig.of(self._loaded, new)
        except ConfigError as error:
            self._reporter.update(rejected=str(error), revision=new.revision)
            return
        digest = self._config.settings.digest
        if not new.standby and (before.standby or before.shared != new.shared):
            self._claim(new.generation)
        elif digest != self._reporter.status.digest:
            self._open(RECONFIGURED)
            self._reporter.update(since=dict(self._offsets))
        self._reporter.update(rejected="", revision=new.revision, digest=digest)

    def _claim(self, generation: int) -> None:
        """From now on it alone commits for its partitions: all of them, or those that it was given."""
        shares, shared = self._spec.shared, self._shared or self._spec.shared
        if shares:
            mine: Collection[int] = sorted(self._assignment.assigned())
        else:
            self._assignment.leave()
            mine = range(TOPICS.partitions)
        if not shared:  # else a newer generation is another instance's
            refuse_if_stale(self._group.glance(), generation, self._identity.app)
        coverage = self._identity.coverage
        known = newest(read_log(self._kafka, coverage, CoverageSegment)) if coverage is not None else None
        self._writers.fence(mine, shared=shares, before=known is not None and known.shared)
        self._assignment.claimed, self._shared = frozenset(mine), shares
        positions = self._group.read(mine)
        if not shared:
            refuse_if_stale(positions, generation, self._identity.app)
        self._offsets = dict(positions.offsets)
        self._stamp = CommitMetadata(max(generation, positions.metadata.generation if positions.metadata else 0))
        self._open(STARTED)
        self._consumer.assign([TopicPartition(self._identity.input, p, o) for p, o in self._offsets.items()])
        self._reporter.went_live(self._stamp.generation, self._offsets, self._offsets)

    def _open(self, reason: str) -> None:
        if (coverage := self._identity.coverage) is None:
            return  # only a live job has one
        for writer, own in self._writers.each():
            offsets = _of(self._offsets, own)
            line = CoverageSegment(
                reason=reason,
                release=self._identity.release,
                digest=self._config.settings.digest,
                generation=self._stamp.generation,
                ended=offsets,
                since=offsets,
                input_id=topic_id(self._kafka, self._identity.input),
                shared=self._spec.shared,
            )
            writer.commit([line.record(coverage)], self._group, offsets, self._stamp)

    def _process(self) -> None:
        """One batch: what has come, its alerts and its offsets in one transaction."""
        messages = self._consumer.consume(500, 0.1)
        for message in messages:
            if (error := message.error()) is not None:
                raise KafkaException(error)
            self._offsets[_partition(message)] = (message.offset() or 0) + 1
        if not messages:
            return
        self._stamp = CommitMetadata(self._stamp.generation, batch=self._stamp.batch + 1)
        for writer, own in self._writers.each():
            alerts = self._alerts(m for m in messages if _partition(m) in own)
            writer.commit(alerts, self._group, _of(self._offsets, own), self._stamp)
        self._reporter.committed(self._stamp.batch, self._offsets, len(messages), 0)

    def _alerts(self, messages: Iterable[Message]) -> list[Record]:
        settings: Any = self._config.settings
        encoder, now = (
            AlertEncoder(self._identity, self._loaded.declaration, Versions(settings.digest)),
            datetime.now(UTC),
        )
        return [encoder.record(draft, now) for draft in draft_alerts(messages, settings.limit)]


def _partition(message: Message) -> int:
    return message.partition() or 0


def _of(offsets: Mapping[int, int], partitions: Collection[int]) -> dict[int, int]:
    return {partition: offset for partition, offset in offsets.items() if partition in partitions}


def main() -> int:
    """Runs until a signal or an error; returns the exit code."""
    logging.configure("job")
    try:
        settings, kafka = load(JobSettings, KafkaSettings)
        loaded = find(sys.argv[1])
        job = SparklessJob(loaded, settings, kafka)
        with stopped_by_signals(job.stop, f"running {loaded.name}"):
            job.run()
        return 0
    except LozengeError as error:
        logging.logger().error(error.message, hint=error.hint)
        return error.exit_code


if __name__ == "__main__":
    end(main())

"""Claims and commits of a job on a real broker, without Spark: who may commit, from where, and what is valid then."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame

from lozenge import Detector, Settings, Tables
from lozenge.contracts.detector_mode import DetectorMode
from lozenge.contracts.record import Record
from lozenge.detector.events import Alert
from lozenge.detector.loader import LoadedDetector
from lozenge.errors import Fenced, StaleGeneration
from lozenge.job.batch_result import BatchResult, DraftAlert, FailedRecord
from lozenge.job.commit.alert_encoder import AlertEncoder
from lozenge.job.commit.claim import Claim, Claims
from lozenge.job.commit.live_committer import BatchCommit, LiveCommitter
from lozenge.job.identity import Identity
from lozenge.job.settings import JobSettings
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import read_log
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.protocol.coverage import BACKFILLED, RECONFIGURED, STARTED, CoverageSegment, Versions
from tests.integration import clients
from tests.integration.clients import ends
from tests.integration.harness import alerts, committed, group_offsets, new_detector
from tests.streams import AUTH

CARD = "card_1"


def nothing(events: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
    raise AssertionError("nothing is planned here")


def declared(kafka: KafkaSettings, folder: Path, unread: int = 30, **manifest: Any) -> LoadedDetector:
    """A detector with `unread` records before it in each partition."""
    loaded = new_detector(kafka, Detector(nothing, settings=Settings), folder, **manifest)
    feed(kafka, unread)
    return loaded


def feed(kafka: KafkaSettings, count: int) -> None:
    producer = clients.clients(kafka).producer
    for partition in range(kafka.partitions):
        for _ in range(count):
            producer.produce(kafka.topics.events("auth"), b"no event", None, partition)
    assert producer.flush(30) == 0


class Job(NamedTuple):
    """What one process of a job has for its commits."""

    claims: Claims
    claim: Claim
    committer: LiveCommitter
    encoder: AlertEncoder
    identity: Identity

    def processed(self, *numbers: int, more: int = 10, **batch: Any) -> BatchCommit:
        """A batch of `more` offsets in every partition, with an alert for each of `numbers`."""
        return BatchCommit(
            batch.get("result") or BatchResult([draft(number) for number in numbers]),
            batch.get("state_changes", []),
            {p: offset + more for p, offset in self.committer.offsets.items()},
            CommitMetadata(self.claim.metadata.generation, batch=batch.get("batch", 0)),
        )

    def commit(self, *numbers: int, **batch: Any) -> int:
        return self.committer.commit(self.processed(*numbers, **batch), self.encoder)


def job(
    kafka: KafkaSettings,
    loaded: LoadedDetector,
    generation: int,
    among: Collection[int] | None = None,
    *,
    was_standby: bool = False,
) -> Job:
    """A process that has just claimed its partitions."""
    identity = Identity.of(loaded, JobSettings(), kafka.topics)
    claims = Claims(kafka, identity, kafka.partitions, loaded.declaration)
    claim = claims.claim(generation, Versions(Settings().digest), among, was_standby=was_standby)
    committer = LiveCommitter(kafka, identity, loaded.declaration, claims, claim)
    return Job(
        claims, claim, committer, AlertEncoder(identity, loaded.declaration, Versions(Settings().digest)), identity
    )


def draft(number: int, partition: int = 0) -> DraftAlert:
    at = datetime.now(UTC)
    return DraftAlert(Alert(reason=str(number)), CARD, str(number), at, at, position=(partition, number))


def emitted(kafka: KafkaSettings, loaded: LoadedDetector) -> list[str]:
    return sorted(a["reason"] for a in alerts(kafka, loaded.name))


def offsets(kafka: KafkaSettings, loaded: LoadedDetector) -> dict[int, int]:
    return {p: offset for p, (offset, _) in group_offsets(kafka, loaded.name).items()}


def segments(kafka: KafkaSettings, loaded: LoadedDetector) -> list[CoverageSegment]:
    return read_log(kafka, kafka.topics.detector(loaded.name).coverage, CoverageSegment)


def test_a_batch_is_valid_as_a_whole(kafka: KafkaSettings, tmp_path: Path) -> None:
    loaded = declared(kafka, tmp_path)
    now = job(kafka, loaded, 1)
    begin = now.claim.offsets
    failed = FailedRecord(2, begin[2], ValueError("no event"))
    state = Record(now.identity.state, 0, b"key", b"{}")
    assert now.commit(result=BatchResult([draft(1)], [failed]), state_changes=[state]) == 10 * kafka.partitions
    assert emitted(kafka, loaded) == ["1"]
    assert [r.value for r in committed(kafka, now.identity.dead_letters)] == [b"no event"]
    assert [r.value for r in committed(kafka, now.identity.state)] == [b"{}"]
    assert offsets(kafka, loaded) == now.committer.offsets == {p: offset + 10 for p, offset in begin.items()}


def test_the_newest_claim_alone_commits(kafka: KafkaSettings, tmp_path: Path) -> None:
    loaded = declared(kafka, tmp_path)
    old = job(kafka, loaded, 1)
    old.commit(1)
    new = job(kafka, loaded, 2)
    assert new.claim.offsets == old.committer.offsets
    with pytest.raises(Fenced):
        old.commit(2)
    assert offsets(kafka, loaded) == new.claim.offsets
    new.commit(3)
    assert emitted(kafka, loaded) == ["1", "3"]


def test_an_older_generation_cannot_claim_and_fences_nobody(kafka: KafkaSettings, tmp_path: Path) -> None:
    loaded = declared(kafka, tmp_path)
    new = job(kafka, loaded, 2)
    with pytest.raises(StaleGeneration, match="generation 2 has replaced it"):
        job(kafka, loaded, 1)
    new.commit(1)
    assert emitted(kafka, loaded) == ["1"]


def test_a_claim_and_new_settings_each_begin_a_segment_of_coverage(kafka: KafkaSettings, tmp_path: Path) -> None:
    loaded = declared(kafka, tmp_path)
    now = job(kafka, loaded, 1)
    now.commit()
    now.committer.record_versions(Versions(Settings().digest))
    now.committer.record_versions(Versions("others"))
    now.commit()
    again = job(kafka, loaded, 2)
    assert [s.reason for s in segments(kafka, loaded)] == [STARTED, RECONFIGURED, STARTED]
    first, reconfigured, last = segments(kafka, loaded)
    assert (reconfigured.digest, reconfigured.ended) == ("others", reconfigured.since)
    assert sum(reconfigured.since.values()) - sum(first.since.values()) == 10 * kafka.partitions
    assert (last.since, last.ended) == (again.claim.offsets, again.claim.offsets)


@pytest.mark.parametrize("was_standby", [False, True])
def test_at_most_once_starts_at_the_end_unless_it_was_a_standby(
    was_standby: bool, kafka: KafkaSettings, tmp_path: Path
) -> None:
    loaded = declared(kafka, tmp_path, kind="stateful", guarantee="at-most-once")
    first = job(kafka, loaded, 1)
    first.commit(more=0, state_changes=[Record(first.identity.state, 0, b"key", b"{}")])
    now = job(kafka, loaded, 2, was_standby=was_standby)
    stored = [r.value for r in committed(kafka, now.identity.state)]
    if was_standby:
        assert (now.claim.offsets, stored) == (first.committer.offsets, [b"{}"])
    else:
        assert (now.claim.offsets, stored) == (ends(kafka, kafka.topics.events("auth")), [b"{}", None])


@pytest.mark.parametrize("was_standby", [False, True])
def test_newest_first_skips_more_than_a_batch_unless_it_was_a_standby(
    was_standby: bool, kafka: KafkaSettings, tmp_path: Path
) -> None:
    loaded = declared(kafka, tmp_path, unread=0, backlog="newest-first", max_batch=2)
    begin = job(kafka, loaded, 1).claim.offsets
    feed(kafka, 3)
    now = job(kafka, loaded, 2, was_standby=was_standby)
    assert now.claim.offsets == (begin if was_standby else ends(kafka, kafka.topics.events("auth")))
    assert BACKFILLED not in {s.reason for s in segments(kafka, loaded)}


def test_alerts_published_ahead_of_their_offsets_are_skipped_until_those_are_committed(
    kafka: KafkaSettings, tmp_path: Path
) -> None:
    realtime = declared(
        kafka, tmp_path, unread=4, kind="aggregate", mode="realtime", trigger="1m", lateness="1m", window="1m"
    )
    ahead = job(kafka, realtime, 1)
    assert [d.dedup_key for d in ahead.committer.publish([draft(1), draft(2)], ahead.encoder)] == ["1", "2"]
    ahead.committer.close()

    again = job(kafka, realtime, 2)
    again.committer.skip_published()
    assert [d.dedup_key for d in again.committer.publish([draft(2), draft(3)], again.encoder)] == ["3"]
    again.committer.close()

    batches = realtime.declaration.model_copy(
        update={"mode": DetectorMode.MICRO_BATCH, "trigger": timedelta(seconds=1)}
    )
    last = job(kafka, LoadedDetector(realtime.name, "2.0.0", realtime.detector, batches, tmp_path, AUTH), 3)
    assert len(last.claim.skipped.published) == 3
    assert last.committer.metadata.output_ahead
    last.commit(1, 2, 3, 4, more=1)
    assert last.committer.metadata.output_ahead, "not all events of these alerts are committed"
    last.commit(5, more=3)
    assert not last.committer.metadata.output_ahead
    assert emitted(kafka, realtime) == ["1", "2", "3", "4", "5"]


def test_instances_commit_for_their_own_partitions(kafka: KafkaSettings, tmp_path: Path) -> None:
    loaded = declared(kafka, tmp_path)
    left, right = job(kafka, loaded, 1, {0, 1}), job(kafka, loaded, 1, {2, 3})
    assert (set(left.claim.offsets), set(right.claim.offsets)) == ({0, 1}, {2, 3})
    left.commit(result=BatchResult([draft(1, 0), draft(2, 1)]))
    right.commit(result=BatchResult([draft(3, 2)]))
    assert emitted(kafka, loaded) == ["1", "2", "3"]
    taken = job(kafka, loaded, 1, {1, 2, 3})
    left.committer.offsets.pop(1)
    assert taken.claim.offsets == {1: left.claim.offsets[1] + 10} | right.committer.offsets
    with pytest.raises(Fenced):
        right.commit(result=BatchResult([draft(4, 2)]))
    assert emitted(kafka, loaded) == ["1", "2", "3"]


def test_a_refresh_moves_nothing(kafka: KafkaSettings, tmp_path: Path) -> None:
    loaded = declared(kafka, tmp_path)
    now = job(kafka, loaded, 1)
    now.commit(1)
    before = group_offsets(kafka, loaded.name)
    now.committer.refresh()
    assert group_offsets(kafka, loaded.name) == before
    assert emitted(kafka, loaded) == ["1"]


def test_a_standby_starts_where_the_live_job_is_and_claims_nothing(kafka: KafkaSettings, tmp_path: Path) -> None:
    loaded = declared(kafka, tmp_path)
    live = job(kafka, loaded, 1)
    live.commit(1)
    identity = Identity.of(loaded, JobSettings(), kafka.topics)
    start = Claims(kafka, identity, kafka.partitions, loaded.declaration).position()
    assert (start.offsets, start.metadata) == (live.committer.offsets, live.committer.metadata)
    live.commit(2)
    assert emitted(kafka, loaded) == ["1", "2"]

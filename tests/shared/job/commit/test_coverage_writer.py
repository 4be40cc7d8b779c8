"""The segments of coverage that a job makes: what they name, and from when on they count."""

import msgspec
import pytest

from lozenge.errors import OffsetsLost
from lozenge.job.commit.coverage_writer import CoverageWriter
from lozenge.job.identity import Identity
from lozenge.kafka.group_offsets import Positions
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.protocol.coverage import BACKFILLED, STARTED, CoverageSegment, Versions
from tests.shared.job.commit.scripted import KAFKA, LIVE, SEGMENT, SHADOW, ScriptedBroker

HERE = Positions({0: 10, 1: 20}, CommitMetadata(1))


def writer(identity: Identity = LIVE) -> CoverageWriter:
    coverage = CoverageWriter(KAFKA, identity)
    coverage.read()
    return coverage


def begun(coverage: CoverageWriter, before: Positions = HERE) -> CoverageSegment:
    return coverage.segment(STARTED, Versions("d2", {"limits": "t1"}), 2, before, {0: 30, 1: 40}, shared=False)


def test_the_newest_segment_is_the_last_one_that_moved_the_detector(scripted: ScriptedBroker) -> None:
    moved = msgspec.structs.replace(SEGMENT, generation=2)
    scripted.segments = [SEGMENT, moved, msgspec.structs.replace(SEGMENT, reason=BACKFILLED)]
    assert writer().newest == moved


def test_coverage_is_read_once_or_again_on_request(scripted: ScriptedBroker) -> None:
    coverage = writer()
    coverage.read()
    assert scripted.count("read the coverage") == 1
    scripted.segments = []
    coverage.read(again=True)
    assert coverage.newest is None


def test_a_recreated_topic_is_refused_unless_any_will_do(scripted: ScriptedBroker) -> None:
    scripted.input_id = "two"
    with pytest.raises(OffsetsLost, match="deleted and created again"):
        writer()
    coverage = CoverageWriter(KAFKA, LIVE)
    coverage.read(any_topic=True)
    assert begun(coverage).input_id == "two"


def test_a_segment_ends_the_one_before_at_the_committed_offsets(scripted: ScriptedBroker) -> None:
    segment = begun(writer())
    assert (segment.release, segment.digest, segment.tables, segment.generation) == ("r2", "d2", {"limits": "t1"}, 2)
    assert (segment.ended, segment.since, segment.input_id) == ({0: 10, 1: 20}, {0: 30, 1: 40}, "one")


def test_where_the_committed_offset_has_expired_the_last_known_one_ends_the_segment_before(
    scripted: ScriptedBroker,
) -> None:
    expired = Positions({0: 0, 1: 20}, CommitMetadata(1), frozenset({0}))
    assert begun(writer(), expired).ended == {0: SEGMENT.since[0], 1: 20}


def test_the_record_of_a_segment_has_the_part_of_one_writer(scripted: ScriptedBroker) -> None:
    coverage = writer()
    [record] = coverage.records(begun(coverage), {1})
    found = msgspec.json.decode(record.value or b"", type=CoverageSegment)
    assert (record.topic, record.partition) == (LIVE.coverage, 0)
    assert (found.ended, found.since) == ({1: 20}, {1: 40})


def test_a_segment_counts_only_once_it_is_committed(scripted: ScriptedBroker) -> None:
    coverage = writer()
    segment = begun(coverage)
    assert coverage.newest == SEGMENT
    coverage.written(segment)
    assert coverage.newest == segment


def test_a_job_that_is_not_live_has_no_coverage(scripted: ScriptedBroker) -> None:
    coverage = writer(SHADOW)
    assert scripted.count("read the coverage") == 0
    segment = begun(coverage)
    assert coverage.records(segment, {0, 1}) == []
    coverage.written(segment)
    assert coverage.newest is None

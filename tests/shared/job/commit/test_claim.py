"""Who may claim, in which order a claim proceeds, and at which offsets it starts."""

from dataclasses import replace

import msgspec
import pytest

from lozenge.contracts.record import Record
from lozenge.errors import BrokerUnavailable, Fenced, OffsetsLost, StaleGeneration
from lozenge.job.commit.claim import StartPosition
from lozenge.job.commit.resume_filter import ResumeFilter
from lozenge.kafka.compacted_topic import Stored
from lozenge.kafka.group_offsets import Positions
from lozenge.protocol.commit_metadata import NO_CHECKPOINT, CommitMetadata
from lozenge.protocol.coverage import (
    OFFSETS_RESET,
    STARTED,
    CoverageSegment,
    Interval,
    Versions,
    gaps,
    intervals,
)
from tests.shared.job.commit.scripted import LIVE, SEGMENT, Fencing, ScriptedBroker, declared

ENDS = {0: 110, 1: 120}
STORED = [Stored(0, b"card_1", b"{}"), Stored(1, b"card_2", b"{}")]
CLOSED = BrokerUnavailable("nobody answers")

VERSIONS = Versions("d2", {"limits": "t1"})


def segments_in(records: list[Record]) -> list[CoverageSegment]:
    """The segments of coverage among the records of a transaction."""
    found = [record.value or b"" for record in records if record.topic == LIVE.coverage]
    return [msgspec.json.decode(value, type=CoverageSegment) for value in found]


def segment_in(records: list[Record]) -> CoverageSegment:
    """The one segment of coverage among the records of a transaction."""
    [found] = segments_in(records)
    return found


def test_an_older_generation_is_refused_before_it_fences_anybody(scripted: ScriptedBroker) -> None:
    scripted.positions = Positions({0: 10, 1: 20}, CommitMetadata(2))
    with pytest.raises(StaleGeneration, match="generation 2 has replaced it"):
        scripted.claims().claim(1, VERSIONS)
    assert scripted.calls == ["glance at the offsets"]


def test_a_newer_generation_that_commits_while_the_claim_fences_is_seen(scripted: ScriptedBroker) -> None:
    scripted.committed_meanwhile = Positions({0: 11, 1: 21}, CommitMetadata(3))
    with pytest.raises(StaleGeneration, match="generation 3 has replaced it"):
        scripted.claims().claim(2, VERSIONS)
    assert scripted.transactions == []


def test_a_claim_waits_for_an_open_transaction_only_once_it_has_fenced_its_writer(scripted: ScriptedBroker) -> None:
    scripted.claims().claim(2, VERSIONS)
    assert scripted.calls == ["glance at the offsets", "read the coverage", "fence", "read the offsets", "commit"]


def test_a_claim_starts_at_what_the_former_owner_has_committed_last(scripted: ScriptedBroker) -> None:
    scripted.committed_meanwhile = Positions({0: 17, 1: 27}, CommitMetadata(1, "c1", 9))
    claim = scripted.claims().claim(2, VERSIONS)
    assert (claim.offsets, claim.metadata) == ({0: 17, 1: 27}, CommitMetadata(2, "c1", 9))


def test_a_claim_commits_its_segment_of_coverage_with_its_offsets(scripted: ScriptedBroker) -> None:
    claims = scripted.claims()
    claim = claims.claim(2, VERSIONS)
    [(records, offsets, metadata)] = scripted.transactions
    assert (offsets, metadata) == (claim.offsets, claim.metadata)
    found = segment_in(records)
    assert (found.reason, found.release, found.versions, found.generation) == (STARTED, "r2", VERSIONS, 2)
    assert (found.ended, found.since, found.input_id) == ({0: 10, 1: 20}, {0: 10, 1: 20}, "one")
    assert claims.coverage.newest == found


def test_offsets_that_another_tool_has_moved_leave_a_gap_or_a_repetition_in_the_coverage(
    scripted: ScriptedBroker,
) -> None:
    scripted.positions = Positions({0: 90, 1: 3}, None, moved=frozenset({0, 1}))
    claim = scripted.claims().claim(2, VERSIONS)
    assert claim.offsets == {0: 90, 1: 3}
    moved, started = segments_in(scripted.transactions[0].records)
    assert (moved.reason, moved.by, moved.release) == (OFFSETS_RESET, "another tool", "")
    assert (moved.ended, moved.since, moved.input_id) == ({0: 5, 1: 15}, {0: 90, 1: 3}, "one")
    assert (started.reason, started.ended, started.since) == (STARTED, claim.offsets, claim.offsets)
    covered = intervals([SEGMENT, moved, started], {0: 95, 1: 20})
    assert gaps(covered) == [Interval(0, 5, 90)]
    assert [(i.begin, i.end) for i in covered if i.partition == 1 and i.size] == [(3, 20)]
    scripted.segments = [SEGMENT, moved, started]
    scripted.claims().claim(3, VERSIONS)
    assert len(segments_in(scripted.transactions[1].records)) == 1, "the claim has committed its own offsets"


@pytest.mark.parametrize("kind", ["aggregate", "stateful"])
def test_a_detector_with_state_does_not_start_at_offsets_that_another_tool_has_moved(
    kind: str, scripted: ScriptedBroker
) -> None:
    scripted.positions = Positions({0: 90, 1: 20}, CommitMetadata(1), moved=frozenset({0}))
    with pytest.raises(OffsetsLost, match="partition 0: another tool has moved the offset to 90"):
        scripted.claims(declared(kind)).claim(2, VERSIONS)
    assert scripted.transactions == []


def test_offsets_of_a_tool_are_no_move_for_a_detector_that_never_ran(scripted: ScriptedBroker) -> None:
    scripted.positions, scripted.segments = Positions({0: 90, 1: 3}, None, moved=frozenset({0, 1})), []
    assert scripted.claims().claim(1, VERSIONS).offsets == {0: 90, 1: 3}
    assert segment_in(scripted.transactions[0].records).reason == STARTED


def test_of_the_moved_offsets_each_instance_records_its_own(scripted: ScriptedBroker) -> None:
    scripted.positions = Positions({0: 10, 1: 30}, CommitMetadata(1), moved=frozenset({1}))
    scripted.claims().claim(2, VERSIONS, {0, 1})
    of_0, of_1 = (segments_in(transaction.records) for transaction in scripted.transactions)
    assert [segment.reason for segment in of_0] == [STARTED]
    assert [(segment.reason, segment.since) for segment in of_1] == [(OFFSETS_RESET, {1: 30}), (STARTED, {1: 30})]


def test_a_claim_whose_transaction_fails_has_written_no_coverage(scripted: ScriptedBroker) -> None:
    scripted.fails["commit"] = Fenced("a newer writer")
    claims = scripted.claims()
    with pytest.raises(Fenced):
        claims.claim(2, VERSIONS)
    assert claims.coverage.newest == SEGMENT


def test_lost_offsets_are_refused_before_anything_is_committed(scripted: ScriptedBroker) -> None:
    scripted.bounds[0] = (50, 110)
    with pytest.raises(OffsetsLost, match="the earliest is 50"):
        scripted.claims().claim(2, VERSIONS)
    assert scripted.transactions == []


def test_a_recreated_topic_is_refused_before_anybody_is_fenced(scripted: ScriptedBroker) -> None:
    scripted.input_id = "two"
    with pytest.raises(OffsetsLost, match="deleted and created again"):
        scripted.claims().claim(2, VERSIONS)
    assert scripted.fencings == []


def test_the_claim_of_an_instance_is_of_its_partitions_with_a_transaction_for_each(scripted: ScriptedBroker) -> None:
    claim = scripted.claims().claim(2, VERSIONS, {0, 1})
    assert claim.shared
    assert scripted.fencings == [Fencing({0, 1}, shared=True, before=False)]
    assert [offsets for _, offsets, _ in scripted.transactions] == [{0: 10}, {1: 20}]
    assert [segment_in(records).since for records, _, _ in scripted.transactions] == [{0: 10}, {1: 20}]


def test_an_instance_leaves_the_partitions_of_others_alone(scripted: ScriptedBroker) -> None:
    claim = scripted.claims().claim(2, VERSIONS, {1})
    assert claim.offsets == {1: 20}
    assert scripted.fencings == [Fencing({1}, shared=True, before=False)]
    assert [offsets for _, offsets, _ in scripted.transactions] == [{1: 20}]


def test_an_instance_needs_no_newer_generation_and_keeps_the_committed_one(scripted: ScriptedBroker) -> None:
    scripted.positions = Positions({0: 10, 1: 20}, CommitMetadata(4, "c1", 7))
    assert scripted.claims().claim(3, VERSIONS, {0}).metadata.generation == 4


def test_the_last_instance_claims_the_whole_and_fences_those_that_shared_it(scripted: ScriptedBroker) -> None:
    claims = scripted.claims()
    claims.claim(2, VERSIONS, {0})
    scripted.positions = Positions({0: 10, 1: 20}, CommitMetadata(3))
    scripted.segments = [msgspec.structs.replace(SEGMENT, shared=True)]
    whole = claims.claim(2, VERSIONS)
    assert (whole.shared, whole.metadata.generation) == (False, 3)
    assert scripted.fencings[-1] == Fencing({0, 1}, shared=False, before=True)


def test_an_instance_reads_again_what_others_have_covered(scripted: ScriptedBroker) -> None:
    claims = scripted.claims()
    claims.claim(2, VERSIONS, {0})
    claims.claim(2, VERSIONS, {0, 1})
    assert scripted.count("read the coverage") == 2


@pytest.mark.parametrize(("kind", "deleted"), [("rule", []), ("aggregate", []), ("stateful", [b"card_1", b"card_2"])])
def test_at_most_once_starts_at_the_end_and_deletes_the_state_of_a_fold_alone(
    kind: str, deleted: list[bytes], scripted: ScriptedBroker
) -> None:
    scripted.stored = STORED
    claim = scripted.claims(declared(kind, guarantee="at-most-once")).claim(2, VERSIONS)
    assert (claim.offsets, claim.metadata) == (ENDS, CommitMetadata(2))
    [(records, offsets, _)] = scripted.transactions
    assert [record.key for record in records if record.topic == LIVE.state] == deleted
    assert all(record.value is None for record in records if record.topic == LIVE.state)
    assert (offsets, segment_in(records).ended, segment_in(records).since) == (ENDS, {0: 10, 1: 20}, ENDS)


def test_at_most_once_needs_neither_its_offsets_nor_the_topic_that_it_knows(scripted: ScriptedBroker) -> None:
    scripted.input_id, scripted.bounds[0] = "two", (50, 110)
    assert scripted.claims(declared(guarantee="at-most-once")).claim(2, VERSIONS).offsets == ENDS


@pytest.mark.parametrize("declaration", [{"guarantee": "at-most-once"}, {"backlog": "newest-first", "max_batch": 2}])
def test_a_standby_continues_where_the_replaced_job_was(declaration: dict[str, str], scripted: ScriptedBroker) -> None:
    claim = scripted.claims(declared(**declaration)).claim(2, VERSIONS, was_standby=True)
    assert claim.offsets == {0: 10, 1: 20}


def test_newest_first_starts_at_the_end_and_its_coverage_shows_the_gap(scripted: ScriptedBroker) -> None:
    claim = scripted.claims(declared(backlog="newest-first", max_batch=2)).claim(2, VERSIONS)
    assert claim.offsets == ENDS
    assert claim.metadata.checkpoint == "c1"
    found = segment_in(scripted.transactions[0].records)
    assert (found.ended, found.since) == ({0: 10, 1: 20}, ENDS)


def test_an_instance_never_skips_its_backlog(scripted: ScriptedBroker) -> None:
    claim = scripted.claims(declared(backlog="newest-first", max_batch=2)).claim(2, VERSIONS, {0, 1})
    assert claim.offsets == {0: 10, 1: 20}


def test_from_its_first_claim_in_real_time_output_is_ahead_and_no_checkpoint_is_continued(
    scripted: ScriptedBroker,
) -> None:
    realtime = declared(mode="realtime")
    first = scripted.claims(realtime).claim(2, VERSIONS)
    assert (first.metadata.output_ahead, first.metadata.checkpoint) == (True, NO_CHECKPOINT)
    scripted.positions = replace(scripted.positions, metadata=CommitMetadata(2, "c7", 3, output_ahead=True))
    second = scripted.claims(realtime).claim(3, VERSIONS)
    assert second.metadata == CommitMetadata(3, "c7", 3, output_ahead=True)
    assert scripted.count("read the published alerts") == 0, "its query reads them when it starts"


def test_in_batches_what_was_published_in_real_time_is_skipped_up_to_the_present_end(scripted: ScriptedBroker) -> None:
    scripted.published = frozenset({"an id"})
    scripted.positions = replace(scripted.positions, metadata=CommitMetadata(1, output_ahead=True))
    claim = scripted.claims().claim(2, VERSIONS)
    assert claim.skipped == ResumeFilter(frozenset({"an id"}), ENDS)
    assert scripted.calls.index("fence") < scripted.calls.index("read the published alerts"), "nobody may still publish"


def test_published_alerts_are_read_only_where_output_may_be_ahead(scripted: ScriptedBroker) -> None:
    start = StartPosition({0: 10, 1: 20}, CommitMetadata(1))
    assert scripted.claims().published_ahead(start) == ResumeFilter()
    assert scripted.count("read the published alerts") == 0


@pytest.mark.parametrize(("kind", "reads"), [("rule", 0), ("aggregate", 1)])
def test_a_rule_that_may_repeat_alerts_does_without_the_read(kind: str, reads: int, scripted: ScriptedBroker) -> None:
    claims = scripted.claims(declared(kind, guarantee="at-least-once"))
    claims.published_ahead(StartPosition({0: 10, 1: 20}, CommitMetadata(1, output_ahead=True)))
    assert scripted.count("read the published alerts") == reads


def test_a_standby_starts_where_the_live_job_is_without_a_claim(scripted: ScriptedBroker) -> None:
    start = scripted.claims().position()
    assert (start.offsets, start.metadata) == ({0: 10, 1: 20}, CommitMetadata(1, "c1", 4))
    assert (scripted.fencings, scripted.transactions) == ([], [])


def test_the_first_start_of_a_detector_has_generation_zero_and_no_offsets_to_lose(scripted: ScriptedBroker) -> None:
    scripted.positions, scripted.segments = Positions({0: 0, 1: 0}, None, frozenset({0, 1})), []
    assert scripted.claims().position() == StartPosition({0: 0, 1: 0}, CommitMetadata(0))
    assert scripted.claims().claim(1, VERSIONS).metadata == CommitMetadata(1)


def test_a_broker_that_does_not_answer_ends_the_claim(scripted: ScriptedBroker) -> None:
    scripted.fails["fence"] = CLOSED
    with pytest.raises(BrokerUnavailable):
        scripted.claims().claim(2, VERSIONS)
    assert scripted.transactions == []

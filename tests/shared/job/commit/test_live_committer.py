"""What a commit makes valid and in which order, which alerts it skips, and what follows a commit that has failed."""

from collections.abc import Sequence

import msgspec
import pytest

from lozenge.contracts.record import Record
from lozenge.detector.manifest import Manifest
from lozenge.errors import BrokerUnavailable, DetectError, Fenced
from lozenge.job.batch_result import BatchResult, DraftAlert, FailureWithoutRecord
from lozenge.job.commit.alert_encoder import AlertEncoder
from lozenge.job.commit.live_committer import BatchCommit, LiveCommitter
from lozenge.kafka.group_offsets import Positions
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge.protocol.coverage import RECONFIGURED, CoverageSegment, Versions
from tests.shared.job.commit.scripted import KAFKA, LIVE, ScriptedBroker, declared, draft

ENCODER = AlertEncoder(LIVE, declared(), Versions("d2"))
DONE = CommitMetadata(2, "c1", 5)
AHEAD = Positions({0: 10, 1: 20}, CommitMetadata(1, output_ahead=True))
AWAY = BrokerUnavailable("nobody answers")


def claimed(scripted: ScriptedBroker, declaration: Manifest | None = None, *among: int) -> LiveCommitter:
    """The committer of a job that has just claimed, all partitions or those `among` them."""
    declaration = declaration or declared()
    claims = scripted.claims(declaration)
    claim = claims.claim(2, Versions("d2"), among or None)
    scripted.calls.clear()
    scripted.transactions.clear()
    return LiveCommitter(KAFKA, LIVE, declaration, claims, claim)


def batch(ends: dict[int, int], alerts: Sequence[DraftAlert] = (), *changes: Record) -> BatchCommit:
    return BatchCommit(BatchResult(alerts), changes, ends, DONE)


def state(partition: int) -> Record:
    return Record(LIVE.state, partition, b"key", b"{}")


def ids(*drafts: DraftAlert) -> list[str]:
    return [ENCODER.alert_id(each) for each in drafts]


def alert_ids(records: Sequence[Record]) -> list[str]:
    """The ids of the alerts among some records."""
    found = (dict(record.headers)["ce_id"] or b"" for record in records if record.topic == LIVE.alerts)
    return [alert_id.decode() for alert_id in found]


def test_alerts_state_dead_letters_and_offsets_are_one_transaction(scripted: ScriptedBroker) -> None:
    committer = claimed(scripted)
    failure = FailureWithoutRecord("detect", "a timer", 1, b"card_1", b"{}", DetectError("raised"))
    result = BatchResult([draft(0, 12)], (), [failure])
    committer.commit(BatchCommit(result, [state(0)], {0: 15, 1: 22}, DONE), ENCODER)
    [(records, offsets, metadata)] = scripted.transactions
    assert [record.topic for record in records] == [LIVE.alerts, LIVE.dead_letters, LIVE.state]
    assert (offsets, metadata) == ({0: 15, 1: 22}, DONE)
    assert (committer.offsets, committer.metadata) == ({0: 15, 1: 22}, DONE)


def test_a_commit_counts_its_events_and_never_moves_an_offset_back(scripted: ScriptedBroker) -> None:
    committer = claimed(scripted)
    assert committer.commit(batch({0: 15, 1: 3}), ENCODER) == 5
    assert committer.offsets == {0: 15, 1: 20}


@pytest.mark.parametrize(
    ("guarantee", "calls"),
    [
        ("exactly-once", ["commit"]),
        ("at-least-once", ["send", "flush", "commit"]),
        ("at-most-once", ["commit", "send", "flush"]),
    ],
)
def test_the_guarantee_decides_when_alerts_are_written(
    guarantee: str, calls: list[str], scripted: ScriptedBroker
) -> None:
    committer = claimed(scripted, declared(guarantee=guarantee))
    committer.commit(batch({0: 115, 1: 125}, [draft(0, 112)]), ENCODER)
    assert scripted.calls == calls
    inside = alert_ids(scripted.transactions[0].records)
    assert inside + alert_ids(scripted.acknowledged) == ids(draft(0, 112))


def test_each_writer_commits_what_belongs_to_its_partitions(scripted: ScriptedBroker) -> None:
    committer = claimed(scripted, None, 0, 1)
    committer.commit(batch({0: 15, 1: 22}, [draft(0, 12), draft(1, 21)], state(0), state(1)), ENCODER)
    first, second = scripted.transactions
    assert (alert_ids(first.records), first.offsets) == (ids(draft(0, 12)), {0: 15})
    assert (alert_ids(second.records), second.offsets) == (ids(draft(1, 21)), {1: 22})
    assert [[r.partition for r in t.records if r.topic == LIVE.state] for t in (first, second)] == [[0], [1]]


def test_a_commit_waits_until_the_alerts_published_ahead_are_acknowledged(scripted: ScriptedBroker) -> None:
    committer = claimed(scripted, declared("aggregate", mode="realtime"))
    committer.publish([draft(0, 12)], ENCODER)
    committer.commit(batch({0: 15, 1: 22}), ENCODER)
    committer.commit(batch({0: 16, 1: 22}), ENCODER)
    assert scripted.calls == ["send", "flush", "commit", "commit"]


def test_offsets_do_not_pass_an_alert_that_was_not_acknowledged(scripted: ScriptedBroker) -> None:
    committer = claimed(scripted, declared("aggregate", mode="realtime"))
    committer.publish([draft(0, 12)], ENCODER)
    scripted.fails["flush"] = AWAY
    with pytest.raises(BrokerUnavailable):
        committer.commit(batch({0: 15, 1: 22}), ENCODER)
    assert (scripted.transactions, committer.offsets) == ([], {0: 10, 1: 20})


def test_the_end_of_a_job_waits_for_acknowledgement_if_there_is_anything_to_wait_for(scripted: ScriptedBroker) -> None:
    committer = claimed(scripted, declared("aggregate", mode="realtime"))
    committer.close()
    assert scripted.calls == []
    committer.publish([draft(0, 12)], ENCODER)
    committer.close()
    assert scripted.calls == ["send", "flush"]


def test_alerts_published_before_are_skipped_until_the_offsets_are_past_them(scripted: ScriptedBroker) -> None:
    known, new = [draft(0, 12), draft(1, 90)], [draft(0, 13), draft(1, 91)]
    scripted.published, scripted.positions = frozenset(ids(*known)), AHEAD
    committer = claimed(scripted)
    committer.commit(batch({0: 110, 1: 80}, [known[0], new[0]]), ENCODER)
    assert committer.metadata.output_ahead, "a crash now needs the recovery read again"
    committer.commit(batch({0: 110, 1: 120}, [known[1], new[1]]), ENCODER)
    assert not committer.metadata.output_ahead
    assert [alert_ids(t.records) for t in scripted.transactions] == [ids(new[0]), ids(new[1])]
    committer.commit(batch({0: 111, 1: 120}, [known[0]]), ENCODER)
    assert alert_ids(scripted.transactions[-1].records) == ids(known[0]), "nothing is skipped any more"


def test_a_commit_that_fails_leaves_what_is_skipped_as_it_was(scripted: ScriptedBroker) -> None:
    scripted.published, scripted.positions = frozenset(ids(draft(0, 12))), AHEAD
    committer = claimed(scripted)
    scripted.fails["commit"] = AWAY
    with pytest.raises(BrokerUnavailable):
        committer.commit(batch({0: 110, 1: 120}, [draft(0, 12)]), ENCODER)
    scripted.fails.clear()
    committer.commit(batch({0: 110, 1: 120}, [draft(0, 12)]), ENCODER)
    assert alert_ids(scripted.transactions[0].records) == []


def test_publishing_ahead_returns_and_sends_what_was_not_published_before(scripted: ScriptedBroker) -> None:
    scripted.published, scripted.positions = frozenset(ids(draft(0, 12))), AHEAD
    committer = claimed(scripted, declared("aggregate", mode="realtime"))
    committer.skip_published()
    assert committer.publish([draft(0, 12), draft(0, 13)], ENCODER) == [draft(0, 13)]
    assert alert_ids(scripted.acknowledged) == ids(draft(0, 13))
    assert committer.publish([draft(0, 12)], ENCODER) == []
    assert scripted.count("send") == 1


def test_the_recovery_read_waits_until_everything_published_is_acknowledged(scripted: ScriptedBroker) -> None:
    committer = claimed(scripted, declared("aggregate", mode="realtime"))
    committer.publish([draft(0, 12)], ENCODER)
    committer.skip_published()
    assert scripted.calls == ["send", "flush", "read the published alerts"]


def test_alerts_of_which_only_some_were_sent_are_waited_for_too(scripted: ScriptedBroker) -> None:
    committer = claimed(scripted, declared("aggregate", mode="realtime"))
    scripted.fails["send"] = AWAY
    with pytest.raises(BrokerUnavailable):
        committer.publish([draft(0, 12), draft(0, 13)], ENCODER)
    committer.skip_published()
    assert scripted.calls == ["send", "flush", "read the published alerts"]


def test_the_ids_for_a_rule_in_real_time_mode_are_those_published_since_its_last_commit(
    scripted: ScriptedBroker,
) -> None:
    committer = claimed(scripted, declared(mode="realtime"))
    scripted.published = frozenset({"an id"})
    assert committer.published_ids() == {"an id"}


def test_a_refresh_commits_the_same_offsets_and_metadata_and_no_record(scripted: ScriptedBroker) -> None:
    committer = claimed(scripted)
    committer.commit(batch({0: 15, 1: 22}, [draft(0, 12)]), ENCODER)
    committer.refresh()
    assert scripted.transactions[-1] == ([], {0: 15, 1: 22}, DONE)


def test_after_a_transaction_of_unknown_result_no_older_offsets_are_committed(scripted: ScriptedBroker) -> None:
    committer = claimed(scripted)
    scripted.fails["commit"] = AWAY
    with pytest.raises(BrokerUnavailable):
        committer.commit(batch({0: 15, 1: 22}), ENCODER)
    scripted.fails.clear()
    committer.refresh()
    assert scripted.transactions == []
    committer.commit(batch({0: 15, 1: 22}), ENCODER)
    committer.refresh()
    assert [offsets for _, offsets, _ in scripted.transactions] == [{0: 15, 1: 22}] * 2


def test_a_batch_that_fails_between_two_writers_keeps_what_the_first_has_committed(scripted: ScriptedBroker) -> None:
    committer = claimed(scripted, None, 0, 1)
    scripted.fails["commit 1"] = Fenced("a newer writer")
    with pytest.raises(Fenced):
        committer.commit(batch({0: 15, 1: 22}), ENCODER)
    assert committer.offsets == {0: 15, 1: 20}
    assert committer.metadata.batch != DONE.batch, "the batch is not done"
    scripted.fails.clear()
    committer.refresh()
    assert len(scripted.transactions) == 1, "its second transaction may have been committed all the same"


def test_a_new_version_of_a_table_begins_a_segment_of_coverage(scripted: ScriptedBroker) -> None:
    committer = claimed(scripted)
    for tables in ({"limits": "t1"}, {"limits": "t1"}, {"limits": "t2"}):
        committer.record_versions(Versions("d2", tables))
    segments = [
        msgspec.json.decode(records[0].value or b"", type=CoverageSegment) for records, _, _ in scripted.transactions
    ]
    assert [(segment.reason, segment.digest, segment.tables) for segment in segments] == [
        (RECONFIGURED, "d2", {"limits": "t1"}),
        (RECONFIGURED, "d2", {"limits": "t2"}),
    ]


def test_new_settings_begin_a_segment_of_coverage_at_the_committed_offsets(scripted: ScriptedBroker) -> None:
    committer = claimed(scripted)
    committer.record_versions(Versions("d2"))
    assert scripted.transactions == []
    committer.record_versions(Versions("d3"))
    committer.record_versions(Versions("d3"))
    [(records, offsets, metadata)] = scripted.transactions
    segment = msgspec.json.decode(records[0].value or b"", type=CoverageSegment)
    assert (segment.reason, segment.digest, segment.generation) == (RECONFIGURED, "d3", 2)
    assert segment.ended == segment.since == offsets == committer.offsets
    assert metadata == committer.metadata

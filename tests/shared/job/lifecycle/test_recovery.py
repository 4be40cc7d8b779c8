"""What a job changes after a failed batch; nothing here runs Spark."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lozenge.errors import BrokerUnavailable, DecodeError, DetectorError, Flood, SparkGone
from lozenge.job.batch_result import FailedRecord
from lozenge.job.lifecycle import recovery
from lozenge.job.lifecycle.recovery import Recovery
from lozenge.job.lifecycle.status_reporter import JobStatusReporter
from lozenge.job.query.batch_limit import BatchLimit
from lozenge.job.query.poison_search import Ranges
from lozenge.spark.avro import MALFORMED, UNKNOWN_SCHEMA
from lozenge.spark.checkpoint import Checkpoint
from lozenge.spark.internals import errors


class Query:
    """A query over records, of which those in `bad` fail."""

    def __init__(self, *bad: int) -> None:
        self._bad = bad
        self.known = {1}
        self.malformed: Sequence[int] = ()
        self.excluded: list[FailedRecord] = []
        self.learned = 0
        self.events = self

    def evaluate(self, ranges: Ranges) -> None:
        for start, end in ranges.values():
            if any(start <= offset < end for offset in self._bad):
                raise ValueError("cannot evaluate this")

    def exclude(self, failed: FailedRecord) -> None:
        self.excluded.append(failed)

    def exclude_malformed(self, ranges: Ranges) -> list[FailedRecord]:
        found = [FailedRecord(0, offset, DecodeError("no event")) for offset in self.malformed]
        self.excluded += found
        return found

    def learn(self) -> set[int]:
        self.learned += 1
        return self.known


@pytest.fixture(autouse=True)
def _spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "require_running", lambda *_: None)
    monkeypatch.setattr(recovery, "partitions", lambda *_: {})
    for name in ("is_result_too_large", "is_other_state"):
        monkeypatch.setattr(errors, name, lambda error, name=name: name in str(error))


def recovering(query: Query, folder: Path) -> tuple[Recovery, Checkpoint]:
    checkpoint, nothing = Checkpoint(folder / "checkpoint"), SimpleNamespace()
    made: Any = Recovery
    return made("one", query, checkpoint, nothing, nothing, JobStatusReporter(None)), checkpoint


def test_an_error_of_the_platform_is_not_recovered(tmp_path: Path) -> None:
    recover, _ = recovering(Query(), tmp_path)
    with pytest.raises(BrokerUnavailable):
        recover.after(BrokerUnavailable("away"), 0, {0: (0, 9)}, None)


def test_a_batch_too_large_for_the_driver_is_halved_and_planned_again(tmp_path: Path) -> None:
    recover, checkpoint = recovering(Query(), tmp_path)
    checkpoint.renew()
    (checkpoint.folder / "offsets").mkdir()
    (checkpoint.folder / "offsets" / "3").write_text("planned")
    limit = BatchLimit(100)
    recover.after(ValueError("is_result_too_large"), 3, {0: (0, 9)}, limit)
    assert (limit.value, checkpoint.last_planned()) == (50, -1)


def test_a_single_event_whose_result_is_too_large_ends_the_job_and_says_so(tmp_path: Path) -> None:
    query = Query(4)
    recover, _ = recovering(query, tmp_path)
    with pytest.raises(DetectorError, match="the result of one event is too large for the driver"):
        recover.after(ValueError("is_result_too_large"), 3, {0: (4, 5)}, BatchLimit(1))
    assert query.excluded == [], "the record is processed by a release or a JVM that can"


def test_a_checkpoint_of_other_settings_is_renewed(tmp_path: Path) -> None:
    recover, checkpoint = recovering(Query(), tmp_path)
    checkpoint.renew()
    before = checkpoint.id
    recover.after(ValueError("is_other_state"), 0, {0: (0, 9)}, None)
    assert checkpoint.id != before


def test_a_schema_that_was_announced_is_learned(tmp_path: Path) -> None:
    query = Query()
    query.known.add(902)
    recover, _ = recovering(query, tmp_path)
    recover.after(ValueError(f"{UNKNOWN_SCHEMA}:902 in a record"), 0, {0: (0, 9)}, None)
    assert (query.learned, query.excluded) == (1, [])


def test_a_record_of_a_schema_that_nobody_knows_is_a_failing_record(tmp_path: Path) -> None:
    query = Query()
    query.malformed = [4]
    recover, _ = recovering(query, tmp_path)
    recover.after(ValueError(f"{UNKNOWN_SCHEMA}:903 in a record"), 0, {0: (0, 9)}, None)
    assert [(record.partition, record.offset) for record in query.excluded] == [(0, 4)]


def test_any_number_of_malformed_records_is_excluded_at_once_and_is_no_flood(tmp_path: Path) -> None:
    query = Query(*range(400))
    query.malformed = range(400)
    recover, _ = recovering(query, tmp_path)
    recover.after(ValueError(f"{MALFORMED}:1:bytes left over in task 0"), 0, {0: (0, 400)}, None)
    assert [record.offset for record in query.excluded] == list(range(400))


def test_failing_records_are_excluded(tmp_path: Path) -> None:
    query = Query(2, 7)
    recover, _ = recovering(query, tmp_path)
    recover.after(ValueError("cannot evaluate this"), 0, {0: (0, 40)}, None)
    assert [record.offset for record in query.excluded] == [2, 7]


def test_code_that_fails_on_everything_is_a_flood(tmp_path: Path) -> None:
    query = Query(*range(40))
    recover, _ = recovering(query, tmp_path)
    with pytest.raises(Flood):
        recover.after(ValueError("cannot evaluate this"), 0, {0: (0, 40)}, None)
    assert query.excluded == []


def test_a_batch_that_fails_though_no_record_does_is_an_error_of_the_detector(tmp_path: Path) -> None:
    recover, _ = recovering(Query(), tmp_path)
    with pytest.raises(DetectorError, match="no record fails alone: out of memory"):
        recover.after(ValueError("out of memory"), 0, {0: (0, 9)}, None)


def test_no_record_is_blamed_for_a_jvm_that_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise SparkGone("running one: Spark's JVM has ended")

    query = Query(2)
    recover, _ = recovering(query, tmp_path)
    monkeypatch.setattr(recovery, "require_running", gone)
    with pytest.raises(SparkGone):
        recover.after(ValueError("connection refused"), 0, {0: (0, 9)}, None)
    assert query.excluded == []

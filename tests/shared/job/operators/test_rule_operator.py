"""A rule's rows become alerts; a row that makes no alert becomes a failure of its record or its group."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from lozenge.errors import EncodeError
from lozenge.job.batch_result import FailedRecord
from lozenge.job.operators.rule_operator import drafts_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ROW: dict[str, Any] = {
    "entity": "card-1",
    "severity": None,
    "score": 0.5,
    "title": None,
    "reason": "seen",
    "evidence": ["e1", None],
    "values": [("amount", "1.50"), ("mcc", None)],
    "event_time": NOON,
    "trigger": {"partition": 2, "offset": 7},
    "labels": [],
    "dedup_key": "e1",
    "closes": NOON,
    "traceparent": None,
    "arrived": None,
}


def test_a_row_becomes_an_alert_at_the_position_of_its_record() -> None:
    [draft] = drafts_of([ROW]).alerts
    assert (draft.entity, draft.dedup_key, draft.trigger, draft.position) == ("card-1", "e1", (2, 7), (2, 7))
    assert draft.alert.values == {"amount": "1.50", "mcc": ""}


def test_a_row_of_a_group_has_no_position() -> None:
    [draft] = drafts_of([ROW | {"trigger": None}]).alerts
    assert (draft.trigger, draft.position) == (None, None)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"entity": None}, "its entity is null"),
        ({"event_time": None, "closes": None}, "its event_time, closes is null"),
        ({"score": None}, "its score is null"),
        ({"reason": None}, "its reason is null"),
        ({"score": 7.0}, "score 7.0 does not lie between 0 and 1"),
        ({"severity": "grave"}, "severity 'grave' is none of"),
    ],
)
def test_a_row_that_makes_no_alert_is_a_failed_record(change: dict[str, Any], why: str) -> None:
    result = drafts_of([ROW | change, ROW])
    assert len(result.alerts) == 1
    [failed] = result.failed_records
    assert isinstance(failed, FailedRecord)
    assert isinstance(failed.error, EncodeError)
    assert (failed.position, failed.stage) == ((2, 7), "encode")
    assert why in str(failed.error)


def test_two_wrong_rows_of_one_record_are_one_failed_record() -> None:
    assert len(drafts_of([ROW | {"score": 2.0}, ROW | {"score": 3.0}]).failed_records) == 1


def test_a_wrong_row_of_a_group_is_a_failure_without_a_record() -> None:
    result = drafts_of([ROW | {"trigger": None, "score": 7.0}])
    [failure] = result.failures_without_record
    assert (failure.cause, failure.stage, failure.position) == ("group/card-1", "encode", None)


def test_no_row_is_no_result() -> None:
    assert drafts_of(pa.table({}).to_pylist()) == ([], [], [])

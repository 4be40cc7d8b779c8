"""A backtest compares by alert id, over the same events on both sides, and says how far back they reach."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lozenge import Detector, Settings
from lozenge.contracts.avro import Codec
from lozenge.detector.events import Alert
from lozenge.detector.loader import LoadedDetector
from lozenge.errors import DetectError
from lozenge.job.batch_result import BatchResult, DraftAlert, FailedRecord
from lozenge.job.commit.alert_encoder import AlertEncoder
from lozenge.job.settings import JobSettings
from lozenge.job.tools import backtest as module
from lozenge.job.tools.backtest import BacktestResult, backtest
from lozenge.protocol.coverage import Versions
from tests.shared.job.commit.scripted import KAFKA, LIVE, declared
from tests.streams import AUTH

LAST = timedelta(hours=1)


def draft(partition: int, offset: int, *, grouped: datetime | None = None) -> DraftAlert:
    """An alert of the event at this offset, or of a group whose window ends at `grouped`."""
    trigger = None if grouped else (partition, offset)
    at = grouped or datetime.now(UTC)
    return DraftAlert(Alert(reason=f"seen {offset}"), "card_1", f"{partition}:{offset}", at, at, trigger, trigger)


def id_of(alert: DraftAlert) -> str:
    return LIVE.alert_id(alert.entity, alert.dedup_key)


class Script:
    """A topic of two partitions with offsets 0 to 100; those from 40 on were written within the last hour."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.asked: list[timedelta] = []
        """How far back offsets were requested."""
        self.retained = {0: (0, 100), 1: (0, 100)}
        self.result = BatchResult(())
        self.live: list[DraftAlert] = []
        self.evaluated: list[Mapping[int, tuple[int, int]]] = []
        builder = SimpleNamespace(
            events=SimpleNamespace(learn=lambda: set()), bounded_operator=lambda ranges, partitions: None
        )
        replaced: Mapping[str, Any] = {
            "settle_ids": lambda kafka, names: None,
            "offsets_at": self._offsets_at,
            "bounds": lambda *of: self.retained,
            "tool_session": lambda app: None,
            "RecordedTables": lambda *of: SimpleNamespace(now=None, topics={}, notes=[]),
            "EventReader": lambda *of: None,
            "QueryBuilder": lambda *of: builder,
            "jvm_pid": lambda spark: os.getpid(),
            "evaluate": self._evaluate,
            "partitions": lambda kafka: {LIVE.alerts: 2},
            "read_since": self._read_since,
            "write_times": lambda kafka, topic, offsets: {0: 1_772_366_400.0, 1: 1_772_366_460.0},
        }
        for name, value in replaced.items():
            patch.setattr(module, name, value)

    def run(self, kind: str = "rule") -> BacktestResult:
        detect: Any = None
        loaded = LoadedDetector("spotter", "1.0.0", Detector(detect, settings=Settings), declared(kind), Path(), AUTH)
        return backtest(loaded, JobSettings(), KAFKA, LAST)

    def _offsets_at(self, kafka: object, topic: str, partitions: int, moment: datetime) -> dict[int, int]:
        back = datetime.now(UTC) - moment
        self.asked.append(back)
        begin = 40 if back < 1.5 * LAST else 20
        return {p: max(low, begin) for p, (low, _) in self.retained.items()}

    def _evaluate(
        self, builder: object, kind: object, ranges: Mapping[int, tuple[int, int]], _: int, *, parts: object
    ) -> BatchResult:
        assert parts is None, "without lists nothing has to be read as it was"
        self.evaluated.append(ranges)
        return self.result

    def _read_since(self, *_: object) -> list[Any]:
        encoder = AlertEncoder(LIVE, declared(), Versions("digest"))
        records = [encoder.record(alert, datetime.now(UTC)) for alert in self.live]
        return [SimpleNamespace(value=lambda value=record.value: value) for record in records]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    return Script(monkeypatch)


def test_alerts_are_the_same_new_or_lost_by_their_ids(script: Script) -> None:
    both, only_here, only_live = draft(0, 50), draft(0, 60), draft(1, 70)
    script.result, script.live = BatchResult([both, only_here]), [both, only_live]
    outcome = script.run()
    assert (outcome.alerts, outcome.same, outcome.release) == (2, 1, LIVE.release)
    assert [alert.alert_id for alert in outcome.new] == [id_of(only_here)]
    assert [alert.alert_id for alert in outcome.lost] == [id_of(only_live)]
    assert outcome.lost[0].reason == "seen 70"


def test_only_alerts_of_events_of_the_time_are_compared_on_either_side(script: Script) -> None:
    before, at_the_begin, after = draft(0, 39), draft(0, 40), draft(0, 100)
    script.result, script.live = BatchResult([before, at_the_begin]), [before, at_the_begin, after]
    outcome = script.run()
    assert (outcome.alerts, outcome.same, outcome.new, outcome.lost) == (1, 1, [], [])


def test_an_alert_of_a_group_is_compared_by_the_time_of_its_window(script: Script) -> None:
    now = datetime.now(UTC)
    within, long_ago = draft(0, 1, grouped=now - LAST / 2), draft(0, 2, grouped=now - 2 * LAST)
    to_come = draft(0, 3, grouped=now + LAST)
    script.result = BatchResult([within, long_ago, to_come])
    assert [alert.alert_id for alert in script.run("aggregate").new] == [id_of(within)]


def test_a_rule_reads_the_events_of_the_time_and_a_fold_as_many_before_them(script: Script) -> None:
    rule, fold = script.run(), script.run("stateful")
    assert script.evaluated == [{0: (40, 100), 1: (40, 100)}, {0: (20, 100), 1: (20, 100)}]
    assert (rule.events, rule.processed) == (120, 120)
    assert (fold.events, fold.processed) == (120, 160), "its state comes of events that are not compared"
    assert script.asked[-1] - 2 * LAST < timedelta(minutes=1)


def test_the_oldest_retained_event_is_named_only_if_the_time_begins_before_it(script: Script) -> None:
    assert script.run().oldest is None
    script.retained = {0: (40, 100), 1: (55, 100)}
    assert script.run().oldest == "2026-03-01T12:00:00+00:00"


def test_a_partition_without_events_of_the_time_is_not_read(script: Script) -> None:
    script.retained = {0: (0, 100), 1: (0, 40)}
    script.run()
    assert script.evaluated == [{0: (40, 100)}]


def test_records_that_cannot_be_processed_are_among_the_result(script: Script) -> None:
    script.result = BatchResult((), [FailedRecord(0, 50, DetectError("large_amount.py:7: no such country"))])
    assert script.run().dead_letters == ["large_amount.py:7: no such country"]


def test_a_detector_that_was_never_deployed_has_only_new_alerts(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "partitions", lambda kafka: {})
    script.result, script.live = BatchResult([draft(0, 50)]), [draft(0, 50)]
    outcome = script.run()
    assert (outcome.release, outcome.same, len(outcome.new)) == (None, 0, 1)


def test_the_alerts_of_the_live_release_are_read_as_they_are_written() -> None:
    record = AlertEncoder(LIVE, declared(), Versions("digest")).record(draft(1, 7), datetime.now(UTC))
    alert = Codec.of("alert").decode(record.value)
    assert (alert["alert_id"], alert["trigger"]) == (id_of(draft(1, 7)), {"partition": 1, "offset": 7})

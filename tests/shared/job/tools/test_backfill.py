"""A backfill processes each gap once, oldest first, in steps of one transaction, and says what it could not have."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from lozenge import Detector, Settings
from lozenge.contracts.record import Record
from lozenge.detector.loader import LoadedDetector
from lozenge.errors import Fenced, UsageError
from lozenge.job.batch_result import BatchResult, DraftAlert
from lozenge.job.query.poison_search import Ranges
from lozenge.job.settings import JobSettings
from lozenge.job.tools import backfill as module
from lozenge.job.tools.backfill import STEP_OFFSETS, BackfillStep, backfill
from lozenge.protocol.coverage import BACKFILLED, STARTED, CoverageSegment, Versions
from tests.shared.job.commit.scripted import KAFKA, LIVE, declared, draft
from tests.streams import AUTH

SPARK: Any = SimpleNamespace()
BEGUN = CoverageSegment(STARTED, "r1", "d1", 1, {}, {0: 0, 1: 0}, input_id="one")


def skipped(begin: int, end: int, partition: int = 0) -> list[CoverageSegment]:
    """A detector that was at `begin` and resumed at `end`."""
    ended = {0: 10, 1: 10} | {partition: begin}
    return [BEGUN, msgspec.structs.replace(BEGUN, ended=ended, since={0: 10, 1: 10} | {partition: end}, generation=2)]


class Script:
    """A broker and a query that follow a script; `done` is what happened, in order."""

    def __init__(self, segments: list[CoverageSegment]) -> None:
        self.segments, self.committed = segments, {0: 10_000_000, 1: 10_000_000}
        self.earliest = {0: 0, 1: 0}
        self.done: list[str] = []
        self.evaluated: list[Ranges] = []
        self.transactions: list[list[Record]] = []
        self.fails_at_commit = False

    @property
    def offsets(self) -> list[tuple[int, int, int]]:
        """Partition, begin and end of what was processed, in order."""
        return [(p, begin, end) for part in self.evaluated for p, (begin, end) in part.items()]

    def written(self) -> list[CoverageSegment]:
        topic = KAFKA.topics.detector("spotter").coverage
        records = [record for records in self.transactions for record in records if record.topic == topic]
        return [msgspec.json.decode(record.value or b"", type=CoverageSegment) for record in records]

    # what the module calls

    def writer(self, kafka: object, id: str) -> "Script":
        self.done.append(f"writer {id}")
        return self

    def fence(self) -> None:
        self.done.append("fence")

    def write(self, records: Sequence[Record]) -> None:
        if self.fails_at_commit:
            raise Fenced("another backfill has begun", hint="it continues")
        self.done.append("commit")
        self.transactions.append(list(records))
        self.segments = [*self.segments, *self.written()[-1:]]

    def read_log(self, kafka: object, topic: str, kind: object) -> list[CoverageSegment]:
        self.done.append("read coverage")
        return self.segments

    def evaluate(self, builder: object, kind: object, part: Ranges, partitions: int) -> BatchResult:
        self.done.append("evaluate")
        self.evaluated.append(part)
        alerts: list[DraftAlert] = [draft(p, begin) for p, (begin, _) in part.items()]
        return BatchResult(alerts)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[CoverageSegment]], Script]:
    def made(segments: list[CoverageSegment]) -> Script:
        script = Script(segments)
        group = SimpleNamespace(glance=lambda: SimpleNamespace(offsets=script.committed), close=lambda: None)
        events = SimpleNamespace(learn=lambda: set())
        builder = SimpleNamespace(events=events, versions=Versions("d2", {"limits": "t1"}))
        tables = SimpleNamespace(take=dict)
        replaced: Mapping[str, Any] = {
            "settle_ids": lambda kafka, names: None,
            "TransactionalWriter": script.writer,
            "ConsumerGroup": lambda *of: group,
            "bounds": lambda *of: {p: (low, 20_000_000) for p, low in script.earliest.items()},
            "read_log": script.read_log,
            "ReferenceTables": lambda *of: tables,
            "EventReader": lambda *of: events,
            "QueryBuilder": lambda *of: builder,
            "evaluate": script.evaluate,
            "topic_id": lambda *of: "one",
        }
        for name, value in replaced.items():
            monkeypatch.setattr(module, name, value)
        return script

    return made


MakeScript = Callable[[list[CoverageSegment]], Script]


def run(kind: str = "rule") -> Iterator[BackfillStep]:
    detect: Any = None
    loaded = LoadedDetector("spotter", "1.0.0", Detector(detect, settings=Settings), declared(kind), LIVE_FOLDER, AUTH)
    return backfill(loaded, JobSettings(release="r2"), KAFKA, spark=SPARK)


LIVE_FOLDER: Any = SimpleNamespace()


@pytest.mark.parametrize("kind", ["stateful", "aggregate"])
def test_a_detector_with_state_is_refused_with_what_to_do(kind: str) -> None:
    with pytest.raises(UsageError, match="depend on its state") as caught:
        next(run(kind))
    assert "--state rebuild" in caught.value.hint


def test_without_a_gap_nothing_is_processed(script: MakeScript) -> None:
    scripted = script([BEGUN])
    assert list(run()) == []
    assert scripted.evaluated == []


def test_others_are_fenced_before_the_gaps_are_read(script: MakeScript) -> None:
    scripted = script(skipped(100, 300))
    list(run())
    assert scripted.done[:3] == ["writer spotter@backfill", "fence", "read coverage"]


def test_a_gap_is_processed_in_one_transaction_of_alerts_and_coverage(script: MakeScript) -> None:
    scripted = script(skipped(100, 300))
    assert list(run()) == [BackfillStep(events=200, alerts=1, dead_letters=0, remaining=0, expired=0)]
    assert scripted.offsets == [(0, 100, 300)]
    [records] = scripted.transactions
    assert [r.topic for r in records] == [LIVE.alerts, KAFKA.topics.detector("spotter").coverage]
    [segment] = scripted.written()
    assert (segment.reason, segment.release, segment.versions) == (BACKFILLED, "r2", Versions("d2", {"limits": "t1"}))
    assert (segment.since, segment.until, segment.ended, segment.input_id) == ({0: 100}, {0: 300}, {}, "one")


def test_a_long_gap_is_divided_into_steps_that_say_what_remains(script: MakeScript) -> None:
    scripted = script(skipped(0, STEP_OFFSETS + 70, partition=1))
    steps = list(run())
    assert [(step.events, step.remaining) for step in steps] == [(STEP_OFFSETS, 70), (70, 0)]
    assert scripted.offsets == [(1, 0, STEP_OFFSETS), (1, STEP_OFFSETS, STEP_OFFSETS + 70)]
    assert len(scripted.transactions) == 2


def test_a_later_gap_of_a_partition_comes_after_the_earlier_one(script: MakeScript) -> None:
    twice = [*skipped(100, 300), msgspec.structs.replace(BEGUN, ended={0: 500}, since={0: 900}, generation=3)]
    scripted = script(twice)
    assert [step.events for step in run()] == [200, 400]
    assert scripted.offsets == [(0, 100, 300), (0, 500, 900)]


def test_what_retention_has_deleted_is_counted_and_not_read(script: MakeScript) -> None:
    scripted = script(skipped(100, 300))
    scripted.earliest[0] = 250
    assert [(step.events, step.expired) for step in run()] == [(50, 150)]
    assert scripted.offsets == [(0, 250, 300)]


def test_a_gap_that_is_gone_as_a_whole_is_reported_without_a_session(script: MakeScript) -> None:
    scripted = script(skipped(100, 300))
    scripted.earliest[0] = 5_000
    assert list(run()) == [BackfillStep(events=0, alerts=0, dead_letters=0, remaining=0, expired=200)]
    assert scripted.transactions == []


def test_of_two_backfills_the_one_that_was_fenced_ends(script: MakeScript) -> None:
    scripted = script(skipped(100, 300))
    scripted.fails_at_commit = True
    with nullcontext(run()) as steps, pytest.raises(Fenced):
        next(steps)
    assert scripted.transactions == []

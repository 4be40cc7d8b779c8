"""The invariants of every detector, each under one fault of its input, its batches or its process.

    duplicated   every event arrives twice: no alert is added, and no event has two alerts of one id
    replayed     a new job processes all events again: the same alerts
    batches      batches of several sizes instead of one: the same alerts. Of an aggregate some end shortly before the
                 last event of a group that alerts, so they divide the group after its threshold crossing
    killed       the job dies within a batch and resumes at its last commit: the same alerts
    late         the first event arrives last, and
    reordered    all events are shuffled: nothing fails. A rule and an aggregate emit the same alerts; a fold may emit
                 others, but the same ones each time
    null_fields  optional fields are null: nothing fails
    hostile      values that the schema allows and nobody expects: nothing fails, other events are unaffected
    poison       the detector raises on one event: that event is a dead letter, other events are unaffected

The same alerts are those with equal ids and reasons, in any order and number.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lozenge.detector.definition import INPUT, Detector
from lozenge.detector.fold import Fold, Yields
from lozenge.detector.loader import LoadedDetector
from lozenge.streams.union_schema import STREAM
from lozenge.testing.case_generator import entity
from lozenge.testing.events import CompleteEvent, PartialEvent, event_table, nullable
from lozenge.testing.faults import dividing_ends, hostile, late, repeated, shuffled
from lozenge.testing.runner import Run, RunInput, case_of, run_of

_FIRST_ENDS = (1, 8)
"""After so many events batches end in any case."""
_KILLED_BATCH = 1
_MAX_EXAMPLES = 3


class Subject:
    """A detector under test, on a stream that raises at least one alert."""

    def __init__(self, case: RunInput, seed: int) -> None:
        self.case, self.seed = case, seed
        self.kind, self.key, self.stream = case.loaded.declaration.kind, case.loaded.key_column, case.loaded.stream
        self.harness = case.harness()
        self.events = list(case.events)
        if failed := {dead_letter.event_id for dead_letter in self.baseline.dead_letters}:
            self.events = [event for event in self.events if event["event_id"] not in failed]
            del self.baseline

    @cached_property
    def baseline(self) -> Run:
        """The run over the events without any fault."""
        return self.run(self.events)

    def run(self, events: Sequence[CompleteEvent]) -> Run:
        """The run over other events, in one batch."""
        batch = self.batch(events)
        return run_of(self.harness, batch, self.harness.process(batch, None))

    def run_streaming(self, killed: int | None = None) -> Run:
        """The run of a streaming job with batches of several sizes. The job is killed within the batch `killed`."""
        batch, ends = self.batch(self.events), set(_FIRST_ENDS)
        if self.kind.state_in_checkpoint and killed is None:
            read = [event for event in self.events if event[self.key] is not None]  # the job skips the others
            ends |= set(dividing_ends(read, self.baseline))
        return run_of(self.harness, batch, self.harness.process_streaming(list(_split(batch, ends)), killed))

    def batch(self, events: Sequence[CompleteEvent]) -> pa.Table:
        """The events as the job reads them."""
        return event_table(events, self.key, self.stream)

    def of_another_entity(self, events: Sequence[CompleteEvent], name: str) -> list[CompleteEvent]:
        """These events with an entity of their own, none later than the last event of the stream."""
        latest: datetime = max(event["event_time"] for event in self.events)
        named = {self.key: entity(name, str(self.seed))}
        return [{**event, **named, "event_time": min(event["event_time"], latest)} for event in events]


def duplicated(subject: Subject) -> None:
    assert_ids_differ(subject.baseline)
    assert_same(subject.baseline, subject.run(repeated(subject.events, subject.stream)))


def replayed(subject: Subject) -> None:
    assert_same(subject.baseline, subject.run(subject.events))


def batches(subject: Subject) -> None:
    assert_same(subject.baseline, subject.run_streaming())


def killed(subject: Subject) -> None:
    assert_same(subject.baseline, subject.run_streaming(_KILLED_BATCH))


def arriving_late(subject: Subject) -> None:
    _disordered(subject, late(subject.events, subject.stream))


def reordered(subject: Subject) -> None:
    _disordered(subject, shuffled(subject.events, subject.seed, subject.stream))


def null_fields(subject: Subject) -> None:
    last = {event.get(STREAM, ""): event for event in subject.events}  # of each stream
    lacking = [
        {**event, name: None, "event_id": f"{stream and f'{stream}-'}without-{name}"}
        for stream, event in last.items()
        for name in nullable(event, subject.stream)
        if name != subject.key
    ]
    _assert_nothing_failed(subject.run([*subject.events, *subject.of_another_entity(lacking, "lacking")]))


def hostile_values(subject: Subject) -> None:
    added = subject.of_another_entity(hostile(stream=subject.stream), "hostile")
    disturbed = subject.run([*subject.events, *added])
    _assert_nothing_failed(disturbed)
    if not subject.kind.state_in_checkpoint:  # an aggregate may count over several entities
        name = added[0][subject.key]
        assert_same(subject.baseline, Run((alert for alert in disturbed if alert.entity != name), ()))


def poison(subject: Subject) -> None:
    decisive = {event_id for alert in subject.baseline for event_id in alert.evidence}
    at = next((n for n, event in enumerate(subject.events) if event["event_id"] in decisive), 0)
    copy = {**subject.events[at], "event_id": "poison"}  # same time and entity as the original: no clock advances
    raising = replace(subject.case, loaded=replace(subject.case.loaded, detector=_raising(subject.case, "poison")))
    harness, batch = raising.harness(), subject.batch([*subject.events[: at + 1], copy, *subject.events[at + 1 :]])
    disturbed = run_of(harness, batch, harness.process(batch, None))
    failed = [dead_letter.event_id for dead_letter in disturbed.dead_letters]
    unseen = subject.kind.state_in_topic and not decisive  # the fold's own conditions may filter the event
    assert failed == ["poison"] or (unseen and not failed), f"one event fails, but the dead letters are {failed}"
    assert_same(subject.baseline, disturbed)


INVARIANTS: Mapping[str, Callable[[Subject], None]] = {
    "duplicated": duplicated,
    "replayed": replayed,
    "batches": batches,
    "killed": killed,
    "late": arriving_late,
    "reordered": reordered,
    "null_fields": null_fields,
    "hostile": hostile_values,
    "poison": poison,
}
"""The check of each invariant, by its fault. It raises AssertionError with the alerts that were lost and added."""


def check(detector: LoadedDetector | Detector[Any], partials: Iterable[PartialEvent], **how: Any) -> Run:
    """Checks every invariant on these events, which takes a few seconds. Returns the run without a fault.

    `how` are `settings` and `tables` as for `run`. Pass the events in the order of their times. Raises AssertionError
    with the fault and its effect, or if the events raise no alert.
    """
    subject = Subject(case_of(detector, partials, **how), seed=1)
    assert subject.baseline, "these events raise no alert, so no invariant is checked; pass events that do"
    for fault, assert_invariant in INVARIANTS.items():
        try:
            assert_invariant(subject)
        except AssertionError as error:
            raise AssertionError(f"{fault}: {error}") from None
    return subject.baseline


def assert_same(baseline: Run, disturbed: Run) -> None:
    """Asserts that both runs have the same alert ids and reasons."""
    lost = [f"lost {_shown(alert)}" for alert in baseline if alert.alert_id not in disturbed.reasons]
    added = [f"added {_shown(alert)}" for alert in disturbed if alert.alert_id not in baseline.reasons]
    other = [
        f"{_shown(alert)} has become {disturbed.reasons[alert.alert_id]!r}"
        for alert in baseline
        if disturbed.reasons.get(alert.alert_id, alert.reason) != alert.reason
    ]
    what = ((lost, f"of {len(baseline.reasons)} alerts {len(lost)} lost"), (added, f"{len(added)} added"))
    counts = ", ".join([text for found, text in what if found] + ([f"{len(other)} with another reason"] * bool(other)))
    examples = "".join(f"\n  {line}" for found in (lost, added, other) for line in found[:_MAX_EXAMPLES])
    assert not counts, counts + examples


def assert_ids_differ(run: Run) -> None:
    """Asserts that no event of a rule raises several alerts of one id, of which people would be notified of one."""
    counts = Counter((alert.alert_id, alert.trigger) for alert in run)
    equal = [alert for alert in run if alert.trigger is not None and counts[alert.alert_id, alert.trigger] > 1]
    what = f"{len(equal)} alerts have the id of another one of their event: an event became several rows, as by a join"
    assert not equal, what + "".join(f"\n  {_shown(alert)}" for alert in equal[:_MAX_EXAMPLES])


def _disordered(subject: Subject, events: Sequence[CompleteEvent]) -> None:
    disturbed = subject.run(events)
    _assert_nothing_failed(disturbed)
    assert_same(subject.baseline if not subject.kind.state_in_topic else subject.run(events), disturbed)


def _assert_nothing_failed(run: Run) -> None:
    failed = [f"{dead.event_id}: {dead.error}{_fields(dead.event)}" for dead in run.dead_letters]
    assert not failed, f"{len(failed)} dead letter(s)" + "".join(f"\n  {line}" for line in failed[:_MAX_EXAMPLES])


def _fields(event: CompleteEvent) -> str:
    """The event for a person, without what the platform adds."""
    values = ", ".join(f"{name}={value!s}" for name, value in event.items() if name not in ("event_id", "raw", INPUT))
    return f"\n    on {values}" if values else ""


def _shown(alert: Any) -> str:
    return f"{alert.reason!r} of {alert.entity} by {', '.join(alert.evidence)}"


def _split(batch: pa.Table, ends: Iterable[int]) -> Iterator[pa.Table]:
    cuts = sorted({0, batch.num_rows, *(end for end in ends if end < batch.num_rows)})
    yield from (batch.slice(start, end - start) for start, end in pairwise(cuts))


def _raising(case: RunInput, event_id: str) -> Detector[Any]:
    """The detector, but it raises on one event. A fold raises in its step, after it has changed its state."""
    inner = case.loaded.detector

    def detect(events: DataFrame, settings: Any, tables: Any) -> "DataFrame | Fold[Any]":
        if case.loaded.declaration.kind.state_in_topic:
            return _raising_fold(inner.detect(events, settings, tables), event_id)
        raises = F.when(F.col("event_id") == event_id, F.raise_error(F.lit("poison"))).otherwise(True)
        return inner.detect(events.where(raises), settings, tables)

    return Detector(detect, inner.settings)


def _raising_fold(result: Any, event_id: str) -> Fold[Any]:
    def step(state: Any, event: Any, settings: Any) -> Yields:
        yield from result.step(state, event, settings) or ()
        if event.event_id == event_id:
            raise ValueError("poison")

    return replace(result, step=step)

"""What a detector promises whatever befalls its input, its batches and its process: one fault shows each.

    duplicated   every event arrives twice: nothing is told that is not told of the single ones
    replayed     a job that begins anew judges everything again: the same alerts
    batches      batches of changing sizes instead of one: the same alerts
    killed       the job ends within a batch and goes on with what was committed: the same alerts
    late         the first event arrives last, and
    reordered    no event is in its place: a rule and an aggregate tell the same; a fold, which may tell something else
                 then, tells the same each time; nobody fails
    null_fields  what an event may lack is lacking: nobody fails
    hostile      values that the schema allows and nobody thinks of: nobody fails, and others are judged as before
    poison       the detector raises on one event: that one is a dead letter, all others are judged as before

The same alerts are those with the same ids and reasons, in any order and however often.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lozenge.detector.definition import Detector
from lozenge.detector.fold import Fold, Yields
from lozenge.detector.loader import LoadedDetector
from lozenge.testing.case_generator import entity
from lozenge.testing.events import Partial, Whole, nullable, table
from lozenge.testing.faults import hostile, late, repeated, shuffled
from lozenge.testing.runner import Case, Run, case_of, told_of

_SIZES = (1, 7)
"""Of the first batches; the last one has the rest."""
_KILLED = 1
_SHOWN = 3


class Subject:
    """A detector on a stream that raises at least one alert, with what it tells of it undisturbed."""

    def __init__(self, case: Case, seed: int) -> None:
        self.case, self.seed = case, seed
        self.kind, self.key = case.loaded.declaration.kind, case.loaded.declaration.key_column
        self.bench = case.bench()
        self.events = list(case.events)
        if failed := {letter.event_id for letter in self.plain.dead_letters}:
            self.events = [event for event in self.events if event["event_id"] not in failed]
            del self.plain

    @cached_property
    def plain(self) -> Run:
        """What is told of the events as they are."""
        return self.tell(self.events)

    def tell(self, events: Sequence[Whole]) -> Run:
        """What is told of other events, in one batch."""
        batch = self.batch(events)
        return told_of(self.bench, batch, self.bench.judge(batch, None))

    def tell_live(self, killed: int | None = None) -> Run:
        """What is told of its events by a job with changing batches, that is killed within one of them."""
        batch = self.batch(self.events)
        return told_of(self.bench, batch, self.bench.process_live(list(_cut(batch)), killed))

    def batch(self, events: Sequence[Whole]) -> pa.Table:
        """The events as the job reads them."""
        return table(events, self.key)

    def strangers(self, wholes: Sequence[Whole], name: str) -> list[Whole]:
        """These events as those of an entity of their own, none later than the last of the stream."""
        latest: datetime = max(event["event_time"] for event in self.events)
        named = {self.key: entity(name, str(self.seed))}
        return [{**event, **named, "event_time": min(event["event_time"], latest)} for event in wholes]


def duplicated(subject: Subject) -> None:
    same(subject.plain, subject.tell(repeated(subject.events)))


def replayed(subject: Subject) -> None:
    same(subject.plain, subject.tell(subject.events))


def batches(subject: Subject) -> None:
    same(subject.plain, subject.tell_live())


def killed(subject: Subject) -> None:
    same(subject.plain, subject.tell_live(_KILLED))


def arriving_late(subject: Subject) -> None:
    _disordered(subject, late(subject.events))


def reordered(subject: Subject) -> None:
    _disordered(subject, shuffled(subject.events, subject.seed))


def null_fields(subject: Subject) -> None:
    lacking = [name for name in nullable() if name != subject.key]
    absent = [{**subject.events[-1], name: None, "event_id": f"without-{name}"} for name in lacking]
    _whole(subject.tell([*subject.events, *subject.strangers(absent, "lacking")]))


def hostile_values(subject: Subject) -> None:
    strangers = subject.strangers(hostile(), "hostile")
    told = subject.tell([*subject.events, *strangers])
    _whole(told)
    if subject.kind != "aggregate":  # which may count over several entities
        name = strangers[0][subject.key]
        same(subject.plain, Run((alert for alert in told if alert.entity != name), ()))


def poison(subject: Subject) -> None:
    decisive = {event_id for alert in subject.plain for event_id in alert.evidence}
    at = next((n for n, event in enumerate(subject.events) if event["event_id"] in decisive), 0)
    twin = {**subject.events[at], "event_id": "poison"}  # of the same time and entity as the one before: no clock moves
    raising = replace(subject.case, loaded=replace(subject.case.loaded, detector=_raising(subject.case, "poison")))
    bench, batch = raising.bench(), subject.batch([*subject.events[: at + 1], twin, *subject.events[at + 1 :]])
    told = told_of(bench, batch, bench.judge(batch, None))
    letters = [letter.event_id for letter in told.dead_letters]
    unseen = subject.kind == "stateful" and not decisive  # the fold's own conditions may leave it out
    assert letters == ["poison"] or (unseen and not letters), f"one event fails, but the dead letters are {letters}"
    same(subject.plain, told)


PROMISES: Mapping[str, Callable[[Subject], None]] = {
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
"""What shows each promise, by the fault; it raises AssertionError with what was lost and added."""


def check(detector: LoadedDetector | Detector[Any], partials: Iterable[Partial], **how: Any) -> Run:
    """Shows every promise on these events, and returns the undisturbed run; the seed of what is made up is 1.

    `how` are the settings and tables of `run`. Raises AssertionError with the fault and what came of it, or if the
    events, which should come in the order of their times, raise no alert. Takes a few seconds.
    """
    subject = Subject(case_of(detector, partials, **how), seed=1)
    assert subject.plain, "these events raise no alert, so nothing is shown; use some that do"
    for fault, show in PROMISES.items():
        try:
            show(subject)
        except AssertionError as error:
            raise AssertionError(f"{fault}: {error}") from None
    return subject.plain


def same(plain: Run, disturbed: Run) -> None:
    """Asserts that both tell the same."""
    lost = [f"lost {_shown(alert)}" for alert in plain if alert.alert_id not in disturbed.told]
    added = [f"added {_shown(alert)}" for alert in disturbed if alert.alert_id not in plain.told]
    other = [
        f"{_shown(alert)} has become {disturbed.told[alert.alert_id]!r}"
        for alert in plain
        if disturbed.told.get(alert.alert_id, alert.reason) != alert.reason
    ]
    what = ((lost, f"of {len(plain.told)} alerts {len(lost)} lost"), (added, f"{len(added)} added"))
    counts = ", ".join([text for found, text in what if found] + ([f"{len(other)} with another reason"] * bool(other)))
    examples = "".join(f"\n  {line}" for found in (lost, added, other) for line in found[:_SHOWN])
    assert not counts, counts + examples


def _disordered(subject: Subject, events: Sequence[Whole]) -> None:
    told = subject.tell(events)
    _whole(told)
    same(subject.plain if subject.kind != "stateful" else subject.tell(events), told)


def _whole(told: Run) -> None:
    letters = [f"{letter.event_id}: {letter.error}" for letter in told.dead_letters]
    assert not letters, f"{len(letters)} dead letter(s)" + "".join(f"\n  {line}" for line in letters[:_SHOWN])


def _shown(alert: Any) -> str:
    return f"{alert.reason!r} of {alert.entity} by {', '.join(alert.evidence)}"


def _cut(batch: pa.Table) -> Iterator[pa.Table]:
    start = 0
    for size in (*_SIZES, batch.num_rows):
        if start < batch.num_rows:
            yield batch.slice(start, size)
        start += size


def _raising(case: Case, event_id: str) -> Detector[Any]:
    """The detector, but it raises on one event: a fold in its step, after it has changed its state."""
    inner = case.loaded.detector

    def detect(events: DataFrame, settings: Any, tables: Any) -> "DataFrame | Fold[Any]":
        if case.loaded.declaration.kind == "stateful":
            return _raising_fold(inner.detect(events, settings, tables), event_id)
        poisoned = F.when(F.col("event_id") == event_id, F.raise_error(F.lit("poison"))).otherwise(True)
        return inner.detect(events.where(poisoned), settings, tables)

    return Detector(detect, inner.settings)


def _raising_fold(result: Any, event_id: str) -> Fold[Any]:
    def step(state: Any, event: Any, settings: Any) -> Yields:
        yield from result.step(state, event, settings) or ()
        if event.event_id == event_id:
            raise ValueError("poison")

    return replace(result, step=step)

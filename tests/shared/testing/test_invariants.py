"""Each fault finds the mistakes that it is named after, and no fault finds anything in a correct detector."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lozenge import Alert, Detector, Event, Fold, Settings, State, Tables, Timer, alert, fold
from lozenge.detector.definition import INPUT
from lozenge.detector.loader import LoadedDetector
from lozenge.testing import check, with_manifest
from lozenge.testing.invariants import INVARIANTS, Subject
from lozenge.testing.runner import case_of
from tests.merged_streams import BY_CARD

pytestmark = pytest.mark.integration

TWELVE = [{"card_id": f"card-{n % 2}", "amount": 10 + n} for n in range(12)]


def rule(detect: Callable[[DataFrame], DataFrame]) -> LoadedDetector:
    return with_manifest(Detector(lambda frame, settings, tables: detect(frame), Settings))


def counting(condition: str, reason: str = "'many'", band: Callable[[], str] = str) -> LoadedDetector:
    """An aggregate over the events of a card in an hour."""

    def detect(frame: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
        groups = frame.groupBy(F.window("event_time", "1 hour"), "card_id").agg(
            F.count(F.lit(1)).alias("n"),
            F.size(F.collect_set("event_id")).alias("distinct"),
            F.max("event_time").alias("at"),
        )
        named: dict[str, Any] = {"entity": F.col("card_id"), "window": F.col("window"), "at": F.col("at")}
        return groups.where(condition).select(*alert(reason=F.expr(reason), band=band(), **named))

    return with_manifest(Detector(detect, Settings), kind="aggregate", lateness="10m", window="1h")


class Count(State):
    count: int = 0


def folding(
    step: Callable[[Count, Event, Any], Any], on_timer: Any = None, start: Callable[[], Any] = int
) -> LoadedDetector:
    """A fold per card. `start` runs at the start of each job, like the code of a detector's module."""

    def detect(frame: DataFrame, settings: Settings, tables: Tables) -> Fold[Count]:
        start()
        return fold(frame, by="card_id", state=Count, step=step, on_timer=on_timer, expires=timedelta(days=1))

    return with_manifest(Detector(detect, Settings), kind="stateful")


def thirds(state: Count, event: Event, settings: Settings) -> Iterator[Alert | Timer]:
    state.count += 1
    yield Timer(event.event_time + timedelta(seconds=3))
    if state.count % 3 == 0:
        yield Alert(reason=f"event {state.count}")


def woken(state: Count, at: Any, settings: Settings) -> Iterator[Alert]:
    state.count += 1
    yield Alert(reason=f"woken after {state.count}", evidence=["e1"])


outside: Counter[str] = Counter()
emitted: set[str] = set()
starts = itertools.count()


def counted_outside(state: Count, event: Event, settings: Settings) -> Iterator[Alert]:
    outside[event.card_id] += 1
    if outside[event.card_id] % 3 == 0:
        yield Alert(reason="the third")


def emits_once_per_process(state: Count, event: Event, settings: Settings) -> Iterator[Alert]:
    if event.card_id not in emitted:
        emitted.add(event.card_id)
        yield Alert(reason="the first")


def needing_an_account(state: Count, event: Event, settings: Settings) -> Iterator[Alert]:
    assert event.account_id is not None
    yield Alert(reason=event.account_id.upper())


def at_even_offsets(frame: DataFrame) -> DataFrame:
    return frame.where(F.col(INPUT)["offset"] % 2 == 0).select(*alert(reason=F.lit("even")))


def everything(frame: DataFrame) -> DataFrame:
    return frame.select(*alert(reason=F.lit("seen")))


def exploded(frame: DataFrame) -> DataFrame:
    rows = frame.withColumn("n", F.explode(F.expr("sequence(1, if(amount > 20, 2, 1))")))
    return rows.select(*alert(reason=F.format_string("row %s", "n")))


WRONG: dict[str, tuple[LoadedDetector, str, str]] = {
    "state outside of the fold": (folding(counted_outside, start=outside.clear), "killed", "lost"),
    "state outside of the fold, changed by an event that fails": (
        folding(counted_outside, start=outside.clear),
        "poison",
        "lost",
    ),
    "state outside of the fold, of an earlier job": (folding(emits_once_per_process), "replayed", "lost"),
    "a reason from the clock": (
        rule(lambda frame: frame.select(*alert(reason=F.current_timestamp().cast("string")))),
        "replayed",
        "12 with another reason",
    ),
    "a random rule": (
        rule(lambda frame: everything(frame.where(F.rand() < 0.5))),
        "replayed",
        "lost",
    ),
    "an id from the start of the job": (counting("n >= 3", band=lambda: str(next(starts))), "replayed", "added"),
    "repeats counted": (counting("n >= 7"), "duplicated", "2 added"),
    "several alerts of one event": (
        rule(exploded),
        "duplicated",
        "2 alerts have the id of another one of their event: an event became several rows, as by a join",
    ),
    "an equality that a batch can jump over": (counting("distinct = 4"), "batches", "2 added"),
    "a count that depends on the batches": (
        counting("distinct >= 3", reason="string(distinct)"),
        "batches",
        "2 with another reason",
    ),
    "a dependence on the order of events": (rule(at_even_offsets), "reordered", "lost"),
    "no account": (
        folding(needing_an_account),
        "null_fields",
        "1 dead letter(s)\n  without-account_id: AssertionError",
    ),
    "an amount of zero": (
        rule(lambda frame: frame.where(1 / F.col("amount") > 0).select(*alert(reason=F.lit("x")))),
        "hostile",
        "1 dead letter(s)\n  hostile-1: ",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_detector_fails_under_its_fault(name: str) -> None:
    detector, fault, words = WRONG[name]
    with pytest.raises(AssertionError) as found:
        INVARIANTS[fault](Subject(case_of(detector, TWELVE), seed=1))
    assert words in str(found.value)


def test_a_batch_ends_between_a_late_threshold_crossing_and_the_end_of_its_group() -> None:
    """The first batches end long before the fifteenth event, which crosses the threshold."""
    many = [{"card_id": f"card-{n % 2}"} for n in range(48)]
    wrong = counting("distinct >= 15", reason="string(distinct)")
    with pytest.raises(AssertionError, match="2 with another reason"):
        INVARIANTS["batches"](Subject(case_of(wrong, many), seed=1))
    INVARIANTS["batches"](Subject(case_of(counting("distinct >= 15"), many), seed=1))


def test_a_correct_detector_passes_under_every_fault() -> None:
    """A fold with timers; rules, aggregates and folds without are those in `detectors/`, each with all faults."""
    assert check(folding(thirds, woken), TWELVE)


def test_a_fold_over_two_streams_passes_under_every_fault() -> None:
    def after_failures(state: Count, event: Event, settings: Settings) -> Iterator[Alert]:
        if event.stream == "sign_in":
            state.count += event.attempts if event.result == "failed" else -state.count
        elif state.count >= 2:
            yield Alert(reason=f"{event.amount} after {state.count} failed attempts")

    failed = {"stream": "sign_in", "result": "failed", "card_id": "card-1"}
    payments = [{"stream": "auth", "amount": 10 + n} for n in range(3)]
    detector = replace(folding(after_failures), stream=BY_CARD)
    found = check(detector, [payments[0], failed, payments[1], failed, payments[2], failed | {"result": "passed"}])
    assert [alert.reason for alert in found] == ["12.0000 after 2 failed attempts"]

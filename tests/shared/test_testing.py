"""The test kit tells what the job would write, refuses what the job would refuse, and shows faults."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lozenge import Alert, Detector, Event, Fold, Settings, State, Tables, Timer, alert, fold
from lozenge.contracts import ids
from lozenge.detector.fold import Failure, Raised
from lozenge.errors import DetectorError
from lozenge.testing import NOW, declared, events, hostile, late, plain_fold, repeated, run, shuffled

pytestmark = pytest.mark.integration


class Above(Settings):
    limit: Decimal = Decimal(100)


def above(frame: DataFrame, settings: Above, tables: Tables) -> DataFrame:
    return frame.where(F.col("amount") > settings.limit).select(
        *alert(reason=F.format_string("%s", "amount"), title="Above", labels={"mcc": F.col("mcc")})
    )


rule = declared(Detector(above, settings=Above))


def divide(frame: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
    return frame.select(*alert(reason=(100 / F.col("amount")).cast("string")))


class Count(State):
    count: int = 0


def third(state: Count, event: Event, settings: Settings) -> Iterator[Alert]:
    state.count += 1
    if event.amount == 13:
        raise ValueError("unlucky")
    if state.count % 3 == 0:
        yield Alert(reason=f"event {state.count}", evidence=[event.event_id], values={"mcc": event.mcc})


def thirds(frame: DataFrame, settings: Settings, tables: Tables) -> Fold[Count]:
    return fold(frame.where("auth_result = 'approved'"), by="card_id", state=Count, step=third, expires=timedelta(1))


stateful = declared(Detector(thirds, settings=Settings), kind="stateful")


def counted(frame: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
    groups = frame.groupBy(F.window("event_time", "1 hour"), "card_id").agg(
        F.count(F.lit(1)).alias("n"), F.max("event_time").alias("latest"), F.max(1 / F.col("amount")).alias("most")
    )
    return groups.where("n >= 3 and most > 0").select(
        *alert(reason=F.lit("three"), entity=F.col("card_id"), window=F.col("window"), at=F.col("latest"))
    )


aggregate = declared(Detector(counted, settings=Settings), kind="aggregate", lateness="10m", window="1h")


def test_partial_events_are_made_whole() -> None:
    first, second = events([{"amount": "12.50", "at": "-10m"}, {"merchant_id": None}])
    assert (first["event_id"], first["amount"], NOW - first["event_time"]) == (
        "e1",
        Decimal("12.50"),
        timedelta(0, 600),
    )
    assert (second["event_id"], second["merchant_id"], second["event_time"] - NOW) == ("e2", None, timedelta(0, 2))
    assert events([first, second]) == [first, second]


def test_a_field_that_no_event_has_is_refused() -> None:
    with pytest.raises(ValueError, match="event 2: no such field: amuont; it has event_id, event_time, card_id"):
        events([{}, {"amuont": "1"}])


def test_a_rules_alert_is_the_one_in_its_topic() -> None:
    [told] = run(rule, [{"amount": "50"}, {"amount": "100.5", "mcc": "5411"}])
    assert told.alert_id == ids.alert_id("under_test", "card", "card-1", "e2")
    assert (told.entity, told.reason, told.title, told.severity) == ("card-1", "100.5000", "Above", "medium")
    assert (told.evidence, told.values, told.labels) == (("e2",), {}, {"mcc": "5411"})
    assert (told.event_time, told.score) == (NOW + timedelta(seconds=2), 0.5)
    assert told.trigger is not None
    assert told.trigger[1] == 1


def test_settings_are_values_or_an_instance() -> None:
    for settings in ({"limit": 40}, Above(limit=Decimal(40))):
        assert len(run(rule, [{"amount": "50"}], settings)) == 1


def test_what_spark_cannot_stream_is_refused() -> None:
    def ranked(frame: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
        place = F.row_number().over(Window.partitionBy("card_id").orderBy("event_time"))
        return frame.withColumn("place", place).where("place = 2").select(*alert(reason=F.lit("second")))

    with pytest.raises(DetectorError, match=r"cannot run it as a stream: .*(?i:window)"):
        run(declared(Detector(ranked, settings=Settings)), [{}, {}])


@pytest.mark.parametrize(
    ("remember", "kind"),
    [
        (lambda frame: frame.dropDuplicates(["merchant_id"]), "Deduplicate"),
        (lambda frame: frame.join(frame.select("event_id"), "event_id"), "Join of two streams"),
    ],
)
def test_a_rule_that_remembers_in_spark_is_refused(remember: Callable[[DataFrame], DataFrame], kind: str) -> None:
    def first(frame: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
        return remember(frame).select(*alert(reason=F.lit("first")))

    with pytest.raises(DetectorError, match=f"keep state in Spark .{kind}"):
        run(declared(Detector(first, settings=Settings)), [{}])


@pytest.mark.parametrize(
    ("result", "kind", "complaint"),
    [
        (lambda frame: None, "rule", "detect() returned NoneType, neither a DataFrame nor a fold"),
        (lambda frame: frame, "rule", "it lacks entity, dedup_key"),
        (lambda frame: thirds(frame, Settings(), {}), "rule", 'returned a Fold, but kind = "rule"'),
        (lambda frame: above(frame, Above(), {}), "stateful", 'returned a DataFrame, but kind = "stateful"'),
    ],
)
def test_what_detect_returns_is_held_to_its_kind(result: Callable[[DataFrame], Any], kind: str, complaint: str) -> None:
    detector = Detector(lambda frame, settings, tables: result(frame), settings=Settings)
    with pytest.raises(DetectorError) as refused:
        run(declared(detector, kind=kind), [{}])
    assert complaint in str(refused.value)


def test_a_table_that_a_rule_sums_up_is_no_state() -> None:
    def known(frame: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
        often = tables["seen"].groupBy("merchant_id").count().where("count > 1")
        return frame.join(often, "merchant_id").select(*alert(reason=F.lit("often")))

    seen = declared(
        Detector(known, settings=Settings), tables={"seen": {"path": "seen.csv", "columns": "merchant_id string"}}
    )
    rows = [{"merchant_id": "m1"}, {"merchant_id": "m1"}, {"merchant_id": "m2"}]
    told = run(seen, [{"merchant_id": "m1"}, {"merchant_id": "m2"}], tables={"seen": rows})
    assert [a.evidence for a in told] == [("e1",)]


def test_an_event_without_the_detectors_key_is_not_its_concern() -> None:
    by_account = declared(rule.detector, key="account")
    told = run(by_account, [{"amount": "500", "account_id": None}, {"amount": "500"}])
    assert [(a.entity, a.evidence) for a in told] == [("account-1", ("e2",))]


def test_an_event_on_which_a_rule_raises_becomes_a_dead_letter() -> None:
    told = run(declared(Detector(divide, settings=Settings)), [{}, {"amount": "0"}, {}])
    assert [a.evidence for a in told] == [("e1",), ("e3",)]
    assert [letter.event_id for letter in told.dead_letters] == ["e2"]
    assert "DIVIDE_BY_ZERO" in told.dead_letters[0].error


def test_an_event_on_which_a_fold_raises_becomes_a_dead_letter() -> None:
    told = run(stateful, [{}, {"amount": "13"}, {}, {}])
    assert [a.evidence for a in told] == [("e4",)]
    assert [(letter.event_id, letter.error) for letter in told.dead_letters] == [("e2", "ValueError: unlucky")]


def test_a_timer_on_which_a_fold_raises_becomes_a_dead_letter_and_fires_no_more() -> None:
    def wait(state: Count, event: Event, settings: Settings) -> Iterator[Timer]:
        yield Timer(event.event_time + timedelta(minutes=1))

    def fail(state: Count, at: datetime, settings: Settings) -> Iterator[Alert]:
        state.count += 1
        if state.count == 1:
            raise ValueError("not ready")
        yield Alert(reason=f"woken with {state.count}")

    def waiting(frame: DataFrame, settings: Settings, tables: Tables) -> Fold[Count]:
        return fold(frame, by="card_id", state=Count, step=wait, on_timer=fail, expires=timedelta(1))

    told = run(declared(Detector(waiting, settings=Settings), kind="stateful"), [{}, {"at": "10m"}, {"at": "20m"}])
    due = [NOW + timedelta(minutes=m, seconds=s) for m, s in ((1, 1), (11, 0))]
    assert told == []
    assert [d.event_id for d in told.dead_letters] == [f"timer/{at.isoformat()}" for at in due]
    assert all(d.error.endswith("]: ValueError: not ready") for d in told.dead_letters)


def test_an_alert_that_cannot_be_written_makes_its_event_a_dead_letter() -> None:
    def nobody(frame: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
        score = F.when(F.col("amount") == 2, 7.0).otherwise(0.5)
        entity = F.when(F.col("amount") != 3, F.col("card_id"))
        return frame.select(*alert(reason=F.lit("seen"), score=score, entity=entity, severity=F.lit("high")))

    told = run(declared(Detector(nobody, settings=Settings)), [{"amount": n} for n in (1, 2, 3, 4)])
    assert [a.evidence for a in told] == [("e1",), ("e4",)]
    assert [(d.event_id, d.error) for d in told.dead_letters] == [
        ("e2", "the alert cannot be written: score 7.0 does not lie between 0 and 1"),
        ("e3", "the alert cannot be written: its entity is null"),
    ]


def test_a_group_whose_alert_cannot_be_written_becomes_a_dead_letter() -> None:
    def grouped(frame: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
        groups = frame.groupBy(F.window("event_time", "1 hour"), "account_id").agg(F.max("event_time").alias("at"))
        return groups.select(
            *alert(reason=F.lit("seen"), entity=F.col("account_id"), at=F.col("at"), window=F.col("window"))
        )

    accounts = declared(Detector(grouped, settings=Settings), kind="aggregate", lateness="10m", window="1h")
    told = run(accounts, [{"account_id": "a-1"}, {"account_id": None}])
    assert [a.entity for a in told] == ["a-1"]
    assert [d.event_id for d in told.dead_letters] == ["group/None"]


def test_an_event_on_which_an_aggregate_raises_becomes_a_dead_letter() -> None:
    told = run(aggregate, [{}, {"amount": "0"}, {}, {}])
    assert [letter.event_id for letter in told.dead_letters] == ["e2"]
    assert [a.event_time for a in told] == [NOW + timedelta(seconds=4)]


def test_a_fold_on_spark_is_the_plain_fold_whatever_the_batches() -> None:
    stream = [{"card_id": f"card-{n % 5}", "amount": 10 + n % 4} for n in range(60)]
    outcomes = plain_fold(thirds(_Frame(), Settings(), {}), Settings(), stream)  # type: ignore[arg-type]
    raised = sorted(o.event.event_id for o in outcomes if isinstance(o, Raised) and o.event)
    failed = sorted(o.event.event_id for o in outcomes if isinstance(o, Failure) and o.event)
    assert raised
    assert failed
    for size in (1, 7, 1000, None):
        told = run(stateful, stream, batches=size)
        assert sorted(a.evidence[0] for a in told) == raised
        assert sorted(letter.event_id for letter in told.dead_letters) == failed


def test_an_aggregate_tells_a_crossing_once_and_drops_what_is_too_late() -> None:
    burst = [{"at": f"{minute}m"} for minute in (1, 2, 3, 4, 5)]
    assert len(run(aggregate, burst, batches=1)) == 1
    after = [*burst[:2], {"at": "120m"}, {"at": "121m"}, burst[2]]
    assert run(aggregate, after, batches=1) == []
    assert len(run(aggregate, after)) == 1  # nothing is late within the batch that brings the watermark


def test_faults() -> None:
    good = events([{}, {}, {}])
    assert [e["event_id"] for e in repeated(good)] == ["e1", "e1", "e2", "e2", "e3", "e3"]
    assert [e["event_id"] for e in late(good)] == ["e2", "e3", "e1"]
    assert sorted(e["event_id"] for e in shuffled(good)) == ["e1", "e2", "e3"]
    assert len({e["event_id"] for e in hostile()}) == len(hostile())


class _Frame:
    """Stands in for the DataFrame of a fold that is run by itself."""

    def where(self, condition: str) -> "_Frame":
        return self

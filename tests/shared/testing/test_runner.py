"""The test kit returns the alerts that the job would write, and rejects the detectors that the job would reject."""

import json
import math
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType

from lozenge import Alert, Detector, Event, Fold, Settings, State, Tables, Timer, alert, fold, listed
from lozenge.contracts import ids
from lozenge.detector.fold import Failure, Raised
from lozenge.errors import DetectorError
from lozenge.testing import NOW, events, hostile, late, repeated, run, run_fold, shuffled, with_manifest

pytestmark = pytest.mark.integration


class Above(Settings):
    limit: Decimal = Decimal(100)


def above(frame: DataFrame, settings: Above, tables: Tables) -> DataFrame:
    return frame.where(F.col("amount") > settings.limit).select(
        *alert(reason=F.format_string("%s", "amount"), title="Above", labels={"mcc": F.col("mcc")})
    )


rule = with_manifest(Detector(above, settings=Above))


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


stateful = with_manifest(Detector(thirds, settings=Settings), kind="stateful")


def counted(frame: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
    groups = frame.groupBy(F.window("event_time", "1 hour"), "card_id").agg(
        F.count(F.lit(1)).alias("n"), F.max("event_time").alias("latest"), F.max(1 / F.col("amount")).alias("most")
    )
    return groups.where("n >= 3 and most > 0").select(
        *alert(reason=F.lit("three"), entity=F.col("card_id"), window=F.col("window"), at=F.col("latest"))
    )


aggregate = with_manifest(Detector(counted, settings=Settings), kind="aggregate", lateness="10m", window="1h")


def test_partial_events_are_completed() -> None:
    first, second = events([{"amount": "12.50", "at": "-10m"}, {"merchant_id": None}])
    assert (first["event_id"], first["amount"], NOW - first["event_time"]) == (
        "e1",
        Decimal("12.50"),
        timedelta(0, 600),
    )
    assert (second["event_id"], second["merchant_id"], second["event_time"] - NOW) == ("e2", None, timedelta(0, 2))
    assert events([first, second]) == [first, second]


def test_an_unknown_field_is_rejected() -> None:
    with pytest.raises(ValueError, match="event 2: no such field: amuont; it has event_id, event_time, card_id"):
        events([{}, {"amuont": "1"}])


def test_a_rules_alert_is_the_one_in_its_topic() -> None:
    [emitted] = run(rule, [{"amount": "50"}, {"amount": "100.5", "mcc": "5411"}])
    assert emitted.alert_id == ids.alert_id("under_test", "card", "card-1", "e2")
    assert (emitted.entity, emitted.reason, emitted.title, emitted.severity) == (
        "card-1",
        "100.5000",
        "Above",
        "medium",
    )
    assert (emitted.evidence, emitted.values, emitted.labels) == (("e2",), {}, {"mcc": "5411"})
    assert (emitted.event_time, emitted.score) == (NOW + timedelta(seconds=2), 0.5)
    assert emitted.trigger is not None
    assert emitted.trigger[1] == 1


def test_settings_are_values_or_an_instance() -> None:
    for settings in ({"limit": 40}, Above(limit=Decimal(40))):
        assert len(run(rule, [{"amount": "50"}], settings)) == 1


def test_a_query_that_spark_cannot_stream_is_rejected() -> None:
    def ranked(frame: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
        rank = F.row_number().over(Window.partitionBy("card_id").orderBy("event_time"))
        return frame.withColumn("rank", rank).where("rank = 2").select(*alert(reason=F.lit("second")))

    with pytest.raises(DetectorError, match=r"cannot run it as a stream: .*(?i:window)"):
        run(with_manifest(Detector(ranked, settings=Settings)), [{}, {}])


@pytest.mark.parametrize(
    ("add_state", "kind"),
    [
        (lambda frame: frame.dropDuplicates(["merchant_id"]), "Deduplicate"),
        (lambda frame: frame.join(frame.select("event_id"), "event_id"), "Join of two streams"),
    ],
)
def test_a_rule_with_state_in_spark_is_rejected(add_state: Callable[[DataFrame], DataFrame], kind: str) -> None:
    def first(frame: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
        return add_state(frame).select(*alert(reason=F.lit("first")))

    with pytest.raises(DetectorError, match=f"keep state in Spark .{kind}"):
        run(with_manifest(Detector(first, settings=Settings)), [{}])


@pytest.mark.parametrize(
    ("result", "kind", "complaint"),
    [
        (lambda frame: None, "rule", "detect() returned NoneType, neither a DataFrame nor a fold"),
        (lambda frame: frame, "rule", "it lacks entity, dedup_key"),
        (lambda frame: thirds(frame, Settings(), {}), "rule", 'returned a Fold, but kind = "rule"'),
        (lambda frame: above(frame, Above(), {}), "stateful", 'returned a DataFrame, but kind = "stateful"'),
    ],
)
def test_the_result_of_detect_must_fit_the_declared_kind(
    result: Callable[[DataFrame], Any], kind: str, complaint: str
) -> None:
    detector = Detector(lambda frame, settings, tables: result(frame), settings=Settings)
    with pytest.raises(DetectorError) as rejected:
        run(with_manifest(detector, kind=kind), [{}])
    assert complaint in str(rejected.value)


def test_a_rule_may_aggregate_a_reference_table() -> None:
    def known(frame: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
        often = tables["seen"].groupBy("merchant_id").count().where("count > 1")
        return frame.join(often, "merchant_id").select(*alert(reason=F.lit("often")))

    seen = with_manifest(
        Detector(known, settings=Settings), tables={"seen": {"path": "seen.csv", "columns": "merchant_id string"}}
    )
    rows = [{"merchant_id": "m1"}, {"merchant_id": "m1"}, {"merchant_id": "m2"}]
    result = run(seen, [{"merchant_id": "m1"}, {"merchant_id": "m2"}], tables={"seen": rows})
    assert [a.evidence for a in result] == [("e1",)]


def blocked(frame: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
    found = listed(frame, tables["blocked"], "card_id")
    return found.where("listed is not null").select(*alert(reason=F.col("listed")))


def reported(state: Count, event: Any, settings: Settings) -> Iterator[Alert]:
    state.count += 1
    if event.why:
        yield Alert(reason=f"{event.why} {state.count}")


def blocked_fold(frame: DataFrame, settings: Settings, tables: Tables) -> Fold[Count]:
    known = listed(frame, tables["blocked"], "card_id", into="why")
    return fold(known, by="card_id", state=Count, step=reported, expires=timedelta(1))


@pytest.mark.parametrize(
    ("detect", "kind", "reasons"),
    [(blocked, "rule", ["stolen", "lost"]), (blocked_fold, "stateful", ["stolen 1", "lost 1"])],
)
def test_a_listed_value_is_found_for_events_before_its_expiry(
    detect: Callable[..., Any], kind: str, reasons: list[str]
) -> None:
    detector = with_manifest(Detector(detect, settings=Settings), kind=kind, tables={"blocked": {"list": "cards"}})
    until = NOW + timedelta(hours=1)
    entries: list[dict[str, Any]] = [
        {"value": "a", "reason": "stolen", "expires_at": until},
        {"value": "b", "reason": "lost"},
    ]
    sent: list[Any] = [
        {"card_id": "a", "event_time": until - timedelta(seconds=1)},
        {"card_id": "a", "event_time": until},
        {"card_id": "b", "event_time": until + timedelta(days=99)},
        {"card_id": "c"},
    ]
    assert [each.reason for each in run(detector, sent, tables={"blocked": entries})] == reasons
    assert [*run(detector, sent)] == [], "a list without rows in a test is empty"


def test_an_event_without_the_detectors_key_is_skipped() -> None:
    by_account = with_manifest(rule.detector, key="account")
    result = run(by_account, [{"amount": "500", "account_id": None}, {"amount": "500"}])
    assert [(a.entity, a.evidence) for a in result] == [("account-1", ("e2",))]


def test_an_event_on_which_a_rule_raises_becomes_a_dead_letter() -> None:
    result = run(with_manifest(Detector(divide, settings=Settings)), [{}, {"amount": "0"}, {}])
    assert [a.evidence for a in result] == [("e1",), ("e3",)]
    assert [dead.event_id for dead in result.dead_letters] == ["e2"]
    assert re.search(r"DIVIDE_BY_ZERO.* \(test_runner.py line \d+\)$", result.dead_letters[0].error)


def test_the_error_of_a_python_function_names_its_line() -> None:
    logarithm = F.udf(lambda amount: math.log(amount), DoubleType())

    def logarithms(frame: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
        return frame.select(*alert(reason=logarithm(F.col("amount").cast("double")).cast("string")))

    [dead] = run(with_manifest(Detector(logarithms, settings=Settings)), [{"amount": "0"}]).dead_letters
    assert re.fullmatch(r"ValueError: math domain error \(test_runner.py line \d+, in <lambda>\)", dead.error)


def test_a_dead_letter_is_run_again_from_its_json() -> None:
    [dead] = run(stateful, [{"amount": "13"}]).dead_letters
    [again] = run(stateful, json.loads(json.dumps([{"value": dead.event, "headers": {}}], default=str))).dead_letters
    assert again == dead


def test_an_event_on_which_a_fold_raises_becomes_a_dead_letter() -> None:
    result = run(stateful, [{}, {"amount": "13"}, {}, {}])
    assert [a.evidence for a in result] == [("e4",)]
    [dead] = result.dead_letters
    assert (dead.event_id, dead.event["amount"]) == ("e2", 13)
    assert re.fullmatch(r"ValueError: unlucky \(test_runner.py line \d+, in third\)", dead.error)


def test_a_timer_on_which_a_fold_raises_becomes_a_dead_letter_and_never_fires_again() -> None:
    def wait(state: Count, event: Event, settings: Settings) -> Iterator[Timer]:
        yield Timer(event.event_time + timedelta(minutes=1))

    def fail(state: Count, at: datetime, settings: Settings) -> Iterator[Alert]:
        state.count += 1
        if state.count == 1:
            raise ValueError("not ready")
        yield Alert(reason=f"woken with {state.count}")

    def waiting(frame: DataFrame, settings: Settings, tables: Tables) -> Fold[Count]:
        return fold(frame, by="card_id", state=Count, step=wait, on_timer=fail, expires=timedelta(1))

    result = run(
        with_manifest(Detector(waiting, settings=Settings), kind="stateful"), [{}, {"at": "10m"}, {"at": "20m"}]
    )
    due = [NOW + timedelta(minutes=m, seconds=s) for m, s in ((1, 1), (11, 0))]
    assert result == []
    assert [d.event_id for d in result.dead_letters] == [f"timer/{at.isoformat()}" for at in due]
    assert all("]: ValueError: not ready (test_runner.py line " in d.error for d in result.dead_letters)


def test_an_alert_that_cannot_be_written_makes_its_event_a_dead_letter() -> None:
    def nobody(frame: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
        score = F.when(F.col("amount") == 2, 7.0).otherwise(0.5)
        entity = F.when(F.col("amount") != 3, F.col("card_id"))
        return frame.select(*alert(reason=F.lit("seen"), score=score, entity=entity, severity=F.lit("high")))

    result = run(with_manifest(Detector(nobody, settings=Settings)), [{"amount": n} for n in (1, 2, 3, 4)])
    assert [a.evidence for a in result] == [("e1",), ("e4",)]
    assert [(d.event_id, d.error) for d in result.dead_letters] == [
        ("e2", "the alert cannot be written: score 7.0 does not lie between 0 and 1"),
        ("e3", "the alert cannot be written: its entity is null"),
    ]


def test_an_alert_without_a_score_or_a_reason_is_never_written_as_a_harmless_one() -> None:
    def scored(frame: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
        score = F.when(F.col("amount") != 2, 1.0)  # null, as of a Python function whose result has another type
        return frame.select(*alert(reason=F.when(F.col("amount") != 3, F.lit("seen")), score=score))

    result = run(with_manifest(Detector(scored, settings=Settings)), [{"amount": n} for n in (1, 2, 3)])
    assert [(a.evidence, a.score) for a in result] == [(("e1",), 1.0)]
    assert [(d.event_id, d.error) for d in result.dead_letters] == [
        ("e2", "the alert cannot be written: its score is null"),
        ("e3", "the alert cannot be written: its reason is null"),
    ]


@pytest.mark.parametrize("detector", ["rule", "fold", "aggregate"])
def test_a_run_of_nothing_but_poison_returns_dead_letters(detector: str) -> None:
    kinds = {"rule": with_manifest(Detector(divide, settings=Settings)), "fold": stateful, "aggregate": aggregate}
    poison = [{"amount": "13" if detector == "fold" else "0"}]
    for count in (1, 2):
        result = run(kinds[detector], poison * count)
        assert (list(result), [d.event_id for d in result.dead_letters]) == ([], ["e1", "e2"][:count])


def test_a_run_of_nothing_returns_nothing() -> None:
    for detector in (rule, stateful, aggregate):
        assert run(detector, []) == []


def test_a_group_whose_alert_cannot_be_written_becomes_a_dead_letter() -> None:
    def grouped(frame: DataFrame, settings: Settings, tables: Tables) -> DataFrame:
        groups = frame.groupBy(F.window("event_time", "1 hour"), "account_id").agg(F.max("event_time").alias("at"))
        return groups.select(
            *alert(reason=F.lit("seen"), entity=F.col("account_id"), at=F.col("at"), window=F.col("window"))
        )

    accounts = with_manifest(Detector(grouped, settings=Settings), kind="aggregate", lateness="10m", window="1h")
    result = run(accounts, [{"account_id": "a-1"}, {"account_id": None}])
    assert [a.entity for a in result] == ["a-1"]
    assert [d.event_id for d in result.dead_letters] == ["group/None"]


def test_an_event_on_which_an_aggregate_raises_becomes_a_dead_letter() -> None:
    result = run(aggregate, [{}, {"amount": "0"}, {}, {}])
    assert [dead.event_id for dead in result.dead_letters] == ["e2"]
    assert [a.event_time for a in result] == [NOW + timedelta(seconds=4)]


def test_a_fold_on_spark_equals_the_reference_fold_in_batches_of_any_size() -> None:
    stream = [{"card_id": f"card-{n % 5}", "amount": 10 + n % 4} for n in range(60)]
    outcomes = run_fold(thirds(_Frame(), Settings(), {}), Settings(), stream)  # type: ignore[arg-type]
    raised = sorted(o.event.event_id for o in outcomes if isinstance(o, Raised) and o.event)
    failed = sorted(o.event.event_id for o in outcomes if isinstance(o, Failure) and o.event)
    assert raised
    assert failed
    for size in (1, 7, 1000, None):
        result = run(stateful, stream, batches=size)
        assert sorted(a.evidence[0] for a in result) == raised
        assert sorted(dead.event_id for dead in result.dead_letters) == failed


def test_an_aggregate_emits_an_alert_once_and_drops_late_events() -> None:
    burst = [{"at": f"{minute}m"} for minute in (1, 2, 3, 4, 5)]
    assert len(run(aggregate, burst, batches=1)) == 1
    after = [*burst[:2], {"at": "120m"}, {"at": "121m"}, burst[2]]
    assert run(aggregate, after, batches=1) == []
    assert len(run(aggregate, after)) == 1  # the watermark advances after the batch, so no event of it is late


def test_faults_repeat_delay_and_shuffle_events() -> None:
    good = events([{}, {}, {}])
    assert [e["event_id"] for e in repeated(good)] == ["e1", "e1", "e2", "e2", "e3", "e3"]
    assert [e["event_id"] for e in late(good)] == ["e2", "e3", "e1"]
    assert sorted(e["event_id"] for e in shuffled(good)) == ["e1", "e2", "e3"]
    assert len({e["event_id"] for e in hostile()}) == len(hostile())


class _Frame:
    """Replaces the DataFrame of a fold that runs without Spark."""

    def where(self, condition: str) -> "_Frame":
        return self

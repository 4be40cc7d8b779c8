"""The generator compared with an oracle that knows only the records, never the generator's state."""

import csv
import json
import re
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
import typer

from lozenge_deploy.demo.feed import ISO, JSON, Form, Generator, Raw
from lozenge_deploy.demo.feed.__main__ import seconds
from lozenge_deploy.demo.feed.cases import (
    ATTACK,
    DEVICE,
    DUPLICATE,
    HABIT,
    INCREASE,
    KINDS,
    LARGE,
    LARGE_FROM,
    TRAVEL,
    VELOCITY,
)
from lozenge_deploy.demo.feed.malformed_records import reasons
from lozenge_deploy.demo.feed.population import CEILING, SERVICES, SHOPS
from lozenge_deploy.demo.feed.schedule import micros, steady

END = datetime(2026, 11, 20, 19, tzinfo=UTC)
START = END - timedelta(days=90)
LIVE_START = END + timedelta(seconds=20)
TEN_MINUTES = timedelta(minutes=10)
Record = dict[str, Any]


def records(raws: Iterable[Raw]) -> list[Record]:
    return [json.loads(raw.value) | {"at": raw.event_time} for raw in raws]


def run(
    malformed_rate: float = 0.0, *, seed: int = 7, past: int = 30_000, live: int = 60, form: Form = JSON
) -> tuple[Generator, list[Raw]]:
    """A history, so many seconds of live traffic at 200 a second, and what completes the cases."""
    feed = Generator(START, seed=seed, malformed_rate=malformed_rate, form=form)
    raws = [*feed.past(END, past), *feed.live(steady(LIVE_START, 200, live))]
    raws += feed.finish(LIVE_START + timedelta(seconds=live))
    return feed, raws


@pytest.fixture(scope="module")
def clean() -> tuple[Generator, list[Record]]:
    feed, raws = run()
    return feed, records(raws)


def test_equal_arguments_give_equal_bytes() -> None:
    (one, first), (two, second) = run(0.01, past=2000, live=10), run(0.01, past=2000, live=10)
    assert first == second
    assert (one.written.cases, one.written.malformed, one.written.sent) == (
        two.written.cases,
        two.written.malformed,
        two.written.sent,
    )


@pytest.mark.parametrize(("text", "value"), [("60s", 60.0), ("1.5m", 90.0), ("1000000.000000s", 1e6)])
def test_the_run_time_is_a_duration(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "5", "1e+06s", "-5s"])
def test_a_text_that_is_no_run_time_is_rejected(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=re.escape(repr(text))):
        seconds(text)


def test_another_seed_gives_another_population() -> None:
    (_, one), (_, two) = run(past=2000, live=5), run(past=2000, live=5, seed=8)
    assert {raw.value for raw in one}.isdisjoint(raw.value for raw in two)
    assert {raw.key for raw in one}.isdisjoint(raw.key for raw in two)


def test_transaction_ids_are_unique_within_a_run_and_across_runs(clean: tuple[Generator, list[Record]]) -> None:
    ids = [record["txn_id"] for record in clean[1]]
    assert len(set(ids)) == len(ids) == clean[0].written.sent
    later = Generator(START + timedelta(seconds=1))
    assert set(ids).isdisjoint(record["txn_id"] for record in records(later.past(END, 1000)) if "txn_id" in record)


def test_the_past_is_in_order_complete_and_before_its_end() -> None:
    feed = Generator(START)
    raws = list(feed.past(END, 20_000))
    assert len(raws) == feed.written.sent == 20_000
    assert all(one.event_time <= two.event_time for one, two in pairwise(raws))
    assert START <= raws[0].event_time < START + timedelta(days=1)
    assert END - timedelta(days=1) < raws[-1].event_time < END


def test_nights_and_weekends_have_less_traffic() -> None:
    times = [raw.event_time for raw in Generator(START).past(END, 50_000)]
    hours = Counter(time.hour for time in times)
    days = Counter(time.weekday() for time in times)
    assert sum(hours[h] for h in range(6)) < sum(hours[h] for h in range(12, 18)) / 5
    assert days[5] > 1.2 * days[1]  # Saturday against Tuesday


def test_a_live_record_is_never_dated_after_its_slot() -> None:
    feed = Generator(START)
    list(feed.past(END, 5000))
    reached = 0

    def slots() -> Iterable[int]:
        nonlocal reached
        for at in steady(LIVE_START, 100, 30):
            reached = at
            yield at

    assert all(micros(raw.event_time) <= reached for raw in feed.live(slots()))
    stop = LIVE_START + timedelta(seconds=30)
    assert all(raw.event_time <= stop for raw in feed.finish(stop))


def test_every_key_is_the_card_number(clean: tuple[Generator, list[Record]]) -> None:
    raws = list(Generator(START, malformed_rate=0).past(END, 500))
    assert all(raw.key.decode() == json.loads(raw.value)["pan"] and len(raw.key) == 16 for raw in raws)


def test_large_amounts_are_the_injected_ones(clean: tuple[Generator, list[Record]]) -> None:
    feed, stream = clean
    large = [record for record in stream if Decimal(record["amount"]) >= CEILING]
    assert {(record["txn_id"],) for record in large} == ids_of(feed, LARGE)
    assert all(Decimal(record["amount"]) >= LARGE_FROM and record["result"] == "approved" for record in large)


def test_every_limit_lies_between_ordinary_and_injected_amounts() -> None:
    table = Path(__file__).parents[4] / "detectors" / "large_amount" / "mcc_limits.csv"
    limits = {row["mcc"]: Decimal(row["mcc_limit"]) for row in csv.DictReader(table.read_text().splitlines())}
    for category in SHOPS + SERVICES:
        assert category.high < CEILING <= limits.get(category.mcc, 220), f"lower {category} in population.py"
    assert max(limits.values()) * 3 <= LARGE_FROM, "raise LARGE_FROM in generator.py"


def test_duplicate_charges_are_the_injected_ones(clean: tuple[Generator, list[Record]]) -> None:
    feed, stream = clean
    last: dict[tuple[str, ...], Record] = {}
    found = set()
    for record in stream:
        charge = tuple(record[name] for name in ("pan", "merchant", "amount", "currency"))
        before = last.get(charge)
        if before and record["at"] - before["at"] <= TEN_MINUTES:
            assert before["result"] == record["result"] == "approved"
            found.add((before["txn_id"], record["txn_id"]))
        last[charge] = record
    assert found == ids_of(feed, DUPLICATE)


def test_bursts_are_the_injected_ones_and_ordinary_cards_have_none(clean: tuple[Generator, list[Record]]) -> None:
    feed, stream = clean
    by_card: dict[str, list[Record]] = defaultdict(list)
    for record in stream:
        by_card[record["pan"]].append(record)
    injected = {case.pan for case in feed.written.cases if case.kind in (VELOCITY, DUPLICATE, TRAVEL)}
    for pan, charges in by_card.items():
        assert all(one["at"] <= two["at"] for one, two in pairwise(charges)), "one card's records are in order"
        if pan not in injected:
            assert all(
                fourth["at"] - first["at"] > TEN_MINUTES for first, fourth in zip(charges, charges[3:], strict=False)
            )
    at = {record["txn_id"]: record["at"] for record in stream}
    for burst in ids_of(feed, VELOCITY):
        assert len(burst) >= 12
        assert at[burst[-1]] - at[burst[0]] <= timedelta(minutes=3)
    busy = {
        pan
        for pan, charges in by_card.items()
        if any(late["at"] - early["at"] <= TEN_MINUTES for early, late in zip(charges, charges[5:], strict=False))
    }
    assert busy == {case.pan for case in feed.written.cases if case.kind == VELOCITY}


def test_price_increases_are_the_injected_ones(clean: tuple[Generator, list[Record]]) -> None:
    feed, stream = clean
    paid: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in stream:
        if record["channel"] == "recurring":
            paid[record["pan"], record["merchant"]].append(record)
    found = set()
    for charges in paid.values():
        for one, two in pairwise(charges):
            assert timedelta(days=28) <= two["at"] - one["at"] <= timedelta(days=31)
            assert two["result"] == "approved"
        for n, charge in enumerate(charges[1:], 1):
            if charge["amount"] != charges[n - 1]["amount"]:
                found.add((charge["txn_id"],))
                assert len({before["amount"] for before in charges[n - 3 : n]}) == 1
                assert (
                    Decimal("1.15") <= Decimal(charge["amount"]) / Decimal(charges[n - 1]["amount"]) <= Decimal("1.6")
                )
    assert found == ids_of(feed, INCREASE)
    assert len(paid) == 1000
    assert all(len(charges) >= 3 for charges in paid.values())


def test_cards_in_two_countries_at_once_are_the_injected_ones(clean: tuple[Generator, list[Record]]) -> None:
    feed, stream = clean
    last: dict[str, Record] = {}
    found = set()
    for record in stream:
        if "lat" not in record:
            continue
        before = last.get(record["pan"])
        if before and abs(before["lat"] - record["lat"]) + abs(before["lon"] - record["lon"]) > 1:
            assert record["at"] - before["at"] <= TEN_MINUTES
            found.add((before["txn_id"], record["txn_id"]))
        last[record["pan"]] = record
    assert found == ids_of(feed, TRAVEL)
    assert all(len(one) == 2 for one in found)
    stopped = {case.pan: case.at for case in feed.written.cases if case.kind == TRAVEL}
    used = [record for record in stream if record["pan"] in stopped and record["at"] > stopped[record["pan"]]]
    assert {record["channel"] for record in used} <= {"recurring"}


def test_devices_of_several_cards_are_the_injected_ones(clean: tuple[Generator, list[Record]]) -> None:
    feed, stream = clean
    used: dict[str, list[Record]] = defaultdict(list)
    for record in stream:
        assert ("device" in record) <= (record["channel"] == "ecom")
        if "device" in record:
            used[record["device"]].append(record)
    shared = {device: uses for device, uses in used.items() if len({use["pan"] for use in uses}) > 1}
    assert {tuple(use["txn_id"] for use in uses) for uses in shared.values()} == ids_of(feed, DEVICE)
    assert all(len({use["pan"] for use in uses}) == len(uses) >= 5 for uses in shared.values())


def test_attacked_merchants_are_the_injected_ones(clean: tuple[Generator, list[Record]]) -> None:
    feed, stream = clean
    tried: dict[str, list[Record]] = defaultdict(list)
    for record in stream:
        if record["channel"] == "ecom" and Decimal(record["amount"]) <= 5:
            tried[record["merchant"]].append(record)
    cases = [case.txn_ids for case in feed.written.cases if case.kind == ATTACK]
    for case in cases:
        [charges] = [own for own in tried.values() if {*case} <= {charge["txn_id"] for charge in own}]
        own = [charge for charge in charges if charge["txn_id"] in case]
        assert len({charge["pan"] for charge in own}) == len(own) >= 19
        assert sum(charge["result"] == "declined" for charge in own) >= 16
        assert own[-1]["at"] - own[0]["at"] <= TEN_MINUTES
        assert {charge["txn_id"] for charge in charges} <= {txn_id for each in cases for txn_id in each}
    declined = Counter(name for name, own in tried.items() for each in own if each["result"] == "declined")
    assert {name for name, count in declined.items() if count >= 10} == {
        record["merchant"] for record in stream if any(record["txn_id"] in case for case in cases)
    }


def test_broken_habits_are_the_injected_ones(clean: tuple[Generator, list[Record]]) -> None:
    feed, stream = clean
    broken = {record["pan"] for record in stream if (record["txn_id"],) in ids_of(feed, HABIT)}
    for pan in broken:
        amounts = [(record["txn_id"], Decimal(record["amount"])) for record in stream if record["pan"] == pan]
        far = [number for number, (_, amount) in enumerate(amounts) if amount > 10]
        assert far[0] >= 20
        assert {(amounts[number][0],) for number in far} <= ids_of(feed, HABIT)
        assert all(150 <= amounts[number][1] < CEILING for number in far)


def test_the_past_has_cases_and_live_has_each_kind_soon(clean: tuple[Generator, list[Record]]) -> None:
    feed, _ = clean
    assert {case.kind for case in feed.written.cases if case.at < END} == set(KINDS)
    soon = LIVE_START + timedelta(seconds=15)
    assert {case.kind for case in feed.written.cases if LIVE_START <= case.at < soon} == set(KINDS)
    live = Counter(case.kind for case in feed.written.cases if case.at >= LIVE_START)
    assert all(live[kind] >= 3 for kind in KINDS), live
    assert all(case.at <= LIVE_START + timedelta(seconds=60) for case in feed.written.cases)


def test_a_case_names_records_that_were_sent(clean: tuple[Generator, list[Record]]) -> None:
    feed, stream = clean
    sent = {record["txn_id"]: record for record in stream}
    for case in feed.written.cases:
        pans = {sent[txn_id]["pan"] for txn_id in case.txn_ids}
        assert pans == {case.pan} or (case.kind in (DEVICE, ATTACK) and case.pan in pans)
        assert sent[case.txn_ids[-1]]["at"] == case.at


def test_malformed_records_come_at_their_rate_and_for_every_reason() -> None:
    feed, raws = run(0.02)
    assert sum(feed.written.malformed.values()) == pytest.approx(0.02 * feed.written.sent, rel=0.15)
    assert set(feed.written.malformed) == set(reasons(JSON))
    assert sum(not acceptable(raw) for raw in raws) == sum(feed.written.malformed.values())


def test_the_iso_form_writes_the_same_authorisations() -> None:
    (json_feed, plain), (iso_feed, iso) = run(past=3000, live=10), run(past=3000, live=10, form=ISO)
    assert json_feed.written.cases == iso_feed.written.cases
    for one, two in zip(records(plain), records(iso), strict=True):
        assert (two["mti"], two["de2"], two["de37"]) == ("0100", one["pan"], one["txn_id"])
        decimals = 0 if one["currency"] == "JPY" else 2
        assert Decimal(two["de4"]).scaleb(-decimals) == Decimal(one["amount"])
        assert "." not in one["amount"] or decimals
        assert two["de7"] == one["at"].strftime("%m%d%H%M%S")
        assert (two["de18"], two["de41"], two["de42"]) == (one["mcc"], one["terminal"], one["merchant"])
        assert (two["de39"] == "00") == (one["result"] == "approved")
        assert all(len(two[field]) == 3 for field in ("de19", "de22", "de49"))


def test_malformed_iso_records_have_no_future_time_because_they_have_no_year() -> None:
    feed, _ = run(0.05, past=3000, form=ISO)
    assert set(feed.written.malformed) == set(reasons(ISO)) == set(reasons(JSON)) - {"future_time"}


def test_a_history_of_any_length_is_streamed_in_bounded_memory() -> None:
    feed = Generator(START)
    stream = feed.past(END, 1_000_000)
    for _ in islice(stream, 1000):
        pass
    tracemalloc.start()
    for _ in islice(stream, 10_000):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000  # a fifth of these records


def test_a_population_that_is_too_small_is_rejected() -> None:
    with pytest.raises(ValueError, match="at least 10 cards and 98 merchants"):
        Generator(START, cards=3)


def test_new_cards_join_before_a_card_is_used_too_often() -> None:
    feed = Generator(START, cards=10, malformed_rate=0)
    raws = [*feed.live(steady(START, 1000, 3)), *feed.finish(START + timedelta(seconds=3))]
    again = {pan for pan, times in Counter(raw.key.decode() for raw in raws).items() if times > 1}
    assert again == {case.pan for case in feed.written.cases if case.kind in (VELOCITY, DUPLICATE, TRAVEL)}


def ids_of(feed: Generator, kind: str) -> set[tuple[str, ...]]:
    return {case.txn_ids for case in feed.written.cases if case.kind == kind}


def acceptable(raw: Raw) -> bool:
    """Whether a careful normaliser could accept this record."""
    try:
        record = json.loads(raw.value.decode())
        amount, when = Decimal(record["amount"]), datetime.fromisoformat(record["ts"])
    except (ValueError, KeyError, TypeError, ArithmeticError):
        return False
    return "pan" in record and amount > 0 and when < END + timedelta(hours=1)

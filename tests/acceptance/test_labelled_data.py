"""The detectors on three months of labelled card transactions: who finds what, and at what price in false alarms.

The data is a simulated set that is no part of the product; `LOZENGE_DATA` names its folder. It has no
merchants, categories or subscriptions: its terminals stand in as merchants, and `recurring_price_increase`
has no events to process. Labels never enter an event.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lozenge.detector.definition import INPUT
from lozenge.detector.loader import from_folder
from lozenge.testing import spark
from lozenge.testing.harness import Harness

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("LOZENGE_DATA", ROOT.parent / "shared" / "data"))
FILE = FOLDER / "card_transactions_2018q2.parquet"
SCENARIOS = {1: "amount > 220", 2: "terminal", 3: "stolen card"}
CARDS_OF_FOLDS = 5
"""A stateful detector sees one card in so many, to keep the test short."""

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not FILE.is_file(), reason=f"no {FILE.name} in {FOLDER}; set LOZENGE_DATA to its folder"),
]


def canonical(rows: DataFrame) -> DataFrame:
    """The transactions as a decoded canonical topic, one partition, in order of time."""
    event = {
        "event_id": F.col("TRANSACTION_ID").cast("string"),
        "event_time": F.col("TX_DATETIME").cast("timestamp"),
        "card_id": F.format_string("card-%s", "CUSTOMER_ID"),
        "account_id": F.lit(None).cast("string"),
        "merchant_id": F.format_string("merchant-%s", "TERMINAL_ID"),
        "terminal_id": F.format_string("terminal-%s", "TERMINAL_ID"),
        "mcc": F.lit("5999"),
        "country": F.lit("BE"),
        "amount": F.col("TX_AMOUNT").cast("decimal(18,2)").cast("decimal(18,4)"),
        "currency": F.lit("EUR"),
        "channel": F.lit("pos"),
        "auth_result": F.lit("approved"),
    }
    own = {
        "key": event["card_id"],
        "partition": F.lit(0),
        "offset": F.col("TRANSACTION_ID").cast("bigint"),
        "traceparent": F.lit(None).cast("string"),
        "arrived": event["event_time"],
    }
    return rows.select(
        *(column.alias(name) for name, column in event.items()),
        F.struct(*(column.alias(name) for name, column in own.items())).alias(INPUT),
    )


class Score:
    """One detector against the labels: an alert is right if any event it names is a fraud."""

    def __init__(self, name: str, rows: DataFrame, settings: Mapping[str, Any]) -> None:
        loaded = from_folder(ROOT / "detectors" / name)
        harness = Harness(loaded, loaded.detector.settings.model_validate(dict(settings)), {})
        self.alerts = [
            {int(e) for e in draft.alert.evidence if e} for draft in harness.process_frame(canonical(rows)).alerts
        ]
        frauds = rows.where("TX_FRAUD = 1").select("TRANSACTION_ID", "TX_FRAUD_SCENARIO").collect()
        self.labels: dict[int, int] = {row[0]: row[1] for row in frauds}
        self.named = set().union(*self.alerts)

    def missed(self, scenario: int) -> set[int]:
        """The frauds of `scenario` that no alert names."""
        return {event for event, label in self.labels.items() if label == scenario} - self.named

    def found(self, scenario: int) -> str:
        """How many of the scenario's frauds some alert names."""
        all_ = sum(label == scenario for label in self.labels.values())
        hits = all_ - len(self.missed(scenario))
        return f"{hits:,} of {all_:,} ({hits / all_:.1%})" if all_ else "-"

    @property
    def precision(self) -> str:
        """The share of alerts that are right."""
        right = sum(any(event in self.labels for event in alert) for alert in self.alerts)
        return f"{right / len(self.alerts):.1%}" if self.alerts else "-"


@pytest.fixture(scope="module")
def rows() -> DataFrame:
    return spark().read.parquet(str(FILE))


@pytest.fixture(scope="module")
def report(request: pytest.FixtureRequest) -> Iterator[list[tuple[str, Score]]]:
    """Collects the scores; the table is printed when all are there, also of tests that pass."""
    scores: list[tuple[str, Score]] = []
    yield scores
    widths = (34, 8, 10, 24, 24, 24)
    lines = [("detector", "alerts", "precision", *(f"{n} {name}" for n, name in SCENARIOS.items()))]
    lines += [(name, f"{len(s.alerts):,}", s.precision, *(s.found(n) for n in SCENARIOS)) for name, s in scores]
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(
            "",
            *("".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)) for line in lines),
            sep="\n",
        )


def test_large_amount_finds_every_row_of_scenario_1(rows: DataFrame, report: list[tuple[str, Score]]) -> None:
    score = Score("large_amount", rows, {})
    report.append(("large_amount", score))
    assert sum(label == 1 for label in score.labels.values()) == 489
    assert score.missed(1) == set()


def test_duplicate_charge_raises_no_false_alarm(rows: DataFrame, report: list[tuple[str, Score]]) -> None:
    score = Score("duplicate_charge", rows.where(f"CUSTOMER_ID % {CARDS_OF_FOLDS} = 0"), {})
    report.append((f"duplicate_charge (1 card in {CARDS_OF_FOLDS})", score))
    assert score.alerts == []  # no card pays one terminal the same amount within six hours


def test_card_velocity_raises_no_false_alarm(rows: DataFrame, report: list[tuple[str, Score]]) -> None:
    score = Score("card_velocity", rows, {})
    report.append(("card_velocity", score))
    assert score.alerts == []  # no card is used more than four times in ten minutes


def test_card_velocity_over_a_day(rows: DataFrame, report: list[tuple[str, Score]]) -> None:
    score = Score("card_velocity", rows, {"window": "1d", "bands": [11]})
    report.append(("card_velocity (11 in a day)", score))
    assert len(score.alerts) == 100  # a busy day is no crime: thieves here spend more, not more often

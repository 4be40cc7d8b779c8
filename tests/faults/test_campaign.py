"""The short campaign: five kills in one volley, which also strikes what is still recovering. See `make nightly`."""

import sys
from pathlib import Path

import pytest
from rich.console import Console

from tests.faults import report
from tests.faults.campaign import Order, run

pytestmark = pytest.mark.integration

KILLS, RECORDS, TOGETHER = 5, 20_000, 5
SEED = 11
DEADLINE_SECONDS = 300.0


def test_five_kills_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    kinds = ("kill", "kill the JVM of")
    order = Order(SEED, KILLS, RECORDS, 100, kinds, TOGETHER, deadline=DEADLINE_SECONDS)
    campaign = run(order, tmp_path, lambda struck: print(struck, file=sys.stderr, flush=True))
    report.show(campaign, Console(highlight=False))
    assert campaign.holds, report.summary(campaign)
    assert campaign.result["counts"]["raw records"] >= RECORDS
    assert report.faults(campaign) == KILLS
    page = report.write(campaign, tmp_path).read_text("utf-8")
    assert report.summary(campaign).split(";")[0] in page

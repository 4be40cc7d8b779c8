"""The short campaign: five kills in one volley, which also strikes what is still recovering. See `make nightly`.

One detector is deployed. The broker, the agent and the notifier are killed, and two JVMs: that of upstream and
that of the job's Spark host.
"""

import sys
from pathlib import Path

import pytest
from rich.console import Console

from tests.faults import report
from tests.faults.campaign import Order, run

pytestmark = pytest.mark.integration

KILLS, RECORDS, TOGETHER = 5, 4_000, 5
DETECTOR = "each_large"
STRUCK = {
    ("kill", "broker"),
    ("kill", "agent"),
    ("kill", "downstream"),
    ("kill the JVM of", "upstream"),
    ("kill the JVM of", DETECTOR),
}
SEED = 72
"""Its plan has these five within nine seconds."""


def test_five_kills_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    kinds = ("kill", "kill the JVM of")
    order = Order(SEED, KILLS, RECORDS, 100, kinds, TOGETHER, detectors=(DETECTOR,), deadline=300.0, quiet=3.0)
    campaign = run(order, tmp_path, lambda struck: print(struck, file=sys.stderr, flush=True))
    report.show(campaign, Console(highlight=False))
    assert campaign.holds, report.summary(campaign)
    assert campaign.result["counts"]["raw records"] >= RECORDS
    assert {(fault.kind, fault.target) for struck in campaign.struck for fault in struck.faults} == STRUCK
    assert report.faults(campaign) == KILLS
    assert "normalising: Spark's JVM has ended" in (tmp_path / "logs" / "upstream.log").read_text("utf-8")
    said = "".join(log.read_text("utf-8") for log in (tmp_path / "jobs" / DETECTOR).glob("*/log"))
    assert "was forked from has ended" in said or f"running {DETECTOR}: Spark's JVM has ended" in said
    page = report.write(campaign, tmp_path).read_text("utf-8")
    assert report.summary(campaign).split(";")[0] in page

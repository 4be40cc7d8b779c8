"""The report says what a campaign showed, with its bound; one that failed names its seed."""

import io
import json
from pathlib import Path

from rich.console import Console

from tests.faults import report
from tests.faults.campaign import Campaign, Order, Struck
from tests.faults.plan import Fault

ORDER = Order(seed=42, faults=3, records=1000, rate=10)
SOUND = {"holds": True, "counts": {"raw records": 1234}, "wrong": []}
LOST = {"name": "unseen", "stage": "each_large", "count": 2, "examples": ["alert <a>", "alert b"]}


def campaign(result: dict[str, object], last: float | None = 30.0) -> Campaign:
    double = (Fault("deploy", "each_large"), Fault("kill", "broker", after=2.5))
    struck = [Struck(5, double, ("", ""), 12.5), Struck(40, (Fault("kill", "upstream"),), ("",), last)]
    return Campaign(ORDER, struck, result=result)


def shown(of: Campaign) -> str:
    output = io.StringIO()
    report.show(of, Console(file=output, width=200))
    return output.getvalue()


def test_a_campaign_that_holds_says_how_little_that_proves() -> None:
    text = shown(campaign(SOUND))
    assert "0 lost, 0 double in 1,234 raw records under 3 faults; so at most 100.0% a fault would do harm" in text
    assert "several at once" in text
    assert "seed" not in text


def test_a_campaign_that_fails_says_what_and_how_to_see_it_again() -> None:
    text = shown(campaign(SOUND | {"holds": False, "wrong": [LOST]}))
    assert "FAILED: 2 findings, 0 times not back in time" in text
    assert "unseen at each_large: 2, such as alert <a>; alert b" in text
    assert 'make faults ARGS="--seed 42 --faults 3 --events 1000 --rate 10"' in text


def test_a_platform_that_does_not_come_back_fails_the_campaign() -> None:
    assert not campaign(SOUND, last=None).holds
    assert "1 times not back in time" in shown(campaign(SOUND, last=None))


def test_the_page_is_self_contained_and_escapes_what_it_quotes(tmp_path: Path) -> None:
    page = report.write(campaign(SOUND | {"holds": False, "wrong": [LOST]}), tmp_path).read_text("utf-8")
    assert "alert &lt;a&gt;" in page
    assert "+2 s kill broker" in page
    assert "http" not in page
    written = json.loads((tmp_path / "report.json").read_text())
    assert (written["holds"], written["seed"], written["faults"]) == (False, 42, 3)
    assert written["incidents"][0]["recovery"] == 12.5

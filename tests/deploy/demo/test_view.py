import io

import pytest
from rich.console import Console

from lozenge_deploy.demo.view import Frame, Stage, draw, plain, seconds
from lozenge_deploy.observe.metrics_reader import Reading, quantile

READING = Reading(
    instances=1, records=12345, rate=51.4, lag=7, catch_up=0.0, emitted=3, p50=0.3, p95=2.25, dead_letters=4,
    dead_share=0.0, batches=9, at=1.0, release="1", cpu_seconds=1.0, cores=0.1, memory_bytes=1
)  # fmt: skip
MESSAGE = {"data": {"severity": "high", "detector": "large_amount", "text": "412.00 EUR is too much\n- amount: 412"}}
FRAME = Frame(
    elapsed=21.5,
    first=18.2,
    stages=[
        Stage("upstream", "running", READING),
        Stage("large_amount", "restarting", None, "importing detector large_amount: no module named numpy"),
        Stage("card_velocity", "waiting"),
    ],
    latest=[MESSAGE],
    notice="the feed has ended",
)


def drawn(scene: Frame) -> str:
    console = Console(width=110, file=io.StringIO(), record=True)
    console.print(draw(scene))
    return console.export_text()


def test_the_view_shows_every_stage_with_its_numbers_and_its_problem() -> None:
    text = drawn(FRAME)
    row = next(line for line in text.splitlines() if "upstream" in line)
    assert [part for part in row.replace("│", " ").split() if part] == [
        *("upstream", "running", "12,345", "51", "7", "300", "ms", "2.2", "s", "4", "9"),
    ]
    assert "large_amount: importing detector large_amount: no module named numpy" in text
    assert "first notification after 18.2 s, the feed has ended" in text


def test_an_alert_is_shown_with_its_reason_on_one_line() -> None:
    line = next(line for line in drawn(FRAME).splitlines() if line.startswith("high"))
    assert line.rstrip().endswith("large_amount              412.00 EUR is too much")


def test_markup_in_a_reason_is_text() -> None:
    odd = {"data": {"severity": "high", "detector": "d", "text": "[red]x[/blue]"}}
    assert "[red]x[/blue]" in drawn(Frame(1, None, [], [odd]))


def test_without_a_terminal_the_view_is_one_line() -> None:
    line = plain(FRAME)
    trouble = "importing detector large_amount: no module named numpy"
    assert line == f" 21.5 s  upstream 12345 (51/s, lag 7); large_amount restarting: {trouble}; card_velocity waiting"


@pytest.mark.parametrize(("value", "text"), [(None, "-"), (0.0123, "12 ms"), (1.26, "1.3 s"), (3600, "3600 s")])
def test_a_latency_is_shown_in_the_unit_that_fits(value: float | None, text: str) -> None:
    assert seconds(value) == text


def test_quantiles_are_linear_within_a_bucket() -> None:
    buckets = [(1.0, 10.0), (2.0, 20.0), (float("inf"), 20.0)]
    assert quantile(buckets, 0.5) == 1.0
    assert quantile(buckets, 0.75) == 1.5
    assert quantile([(1.0, 0.0), (float("inf"), 5.0)], 0.5) == 1.0
    assert quantile([(1.0, 0.0), (float("inf"), 0.0)], 0.5) is None
    assert quantile([], 0.5) is None

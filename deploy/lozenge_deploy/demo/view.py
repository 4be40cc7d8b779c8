"""The live view of the demo: one row per stage, below it the newest alerts. Draws only what it is given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from lozenge_deploy.observe.metrics_reader import Reading

LATEST = 8
_COLOURS = {"running": "green", "starting": "yellow", "restarting": "red", "failed": "bold red", "waiting": "dim"}
_SEVERITIES = {"critical": "bold red", "high": "red", "medium": "yellow", "low": "cyan"}


@dataclass(frozen=True)
class Stage:
    """One row; `reading` is None while there are no figures, `trouble` is the reason why it is not running."""

    name: str
    state: str
    reading: Reading | None = None
    trouble: str = ""


@dataclass(frozen=True)
class Frame:
    """All that the screen shows. Times in seconds; `latest` are webhook messages, oldest first."""

    elapsed: float
    first: float | None
    stages: Sequence[Stage]
    latest: Sequence[Mapping[str, Any]]
    notice: str = ""


def draw(frame: Frame) -> Group:
    """The frame for a terminal."""
    table = Table(title="Lozenge", title_justify="left", expand=False, pad_edge=False)
    table.add_column("stage")
    table.add_column("state")
    for name in ("records", "rate/s", "lag", "p50", "p95", "dead letters", "batches"):
        table.add_column(name, justify="right")
    for stage in frame.stages:
        colour = _COLOURS.get(stage.state, "")
        table.add_row(stage.name, Text(stage.state, colour), *_numbers(stage.reading))
    troubles = [
        Text(f"{s.name}: {s.trouble}", "red", overflow="ellipsis", no_wrap=True) for s in frame.stages if s.trouble
    ]
    found = [_line(message) for message in list(frame.latest)[-LATEST:]]
    return Group(table, *troubles, Text(), *found, Text(), Text(_status(frame), "dim"))


def plain(frame: Frame) -> str:
    """The frame as one line, for a log."""
    parts = []
    for stage in frame.stages:
        reading = stage.reading
        numbers = f" {reading.records} ({reading.rate:.0f}/s, lag {_count(reading.lag)})" if reading else ""
        state = stage.state if stage.state != "running" or not reading else ""
        trouble = f": {stage.trouble}" if stage.trouble else ""
        parts.append(f"{stage.name} {state}{numbers}{trouble}")
    return f"{frame.elapsed:5.1f} s  " + "; ".join(" ".join(part.split()) for part in parts)


def seconds(value: float | None) -> str:
    """A latency for people."""
    if value is None:
        return "-"
    if value < 1:
        return f"{value * 1000:.0f} ms"
    return f"{value:.1f} s" if value < 100 else f"{value:.0f} s"


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _numbers(reading: Reading | None) -> list[str]:
    if reading is None:
        return ["-"] * 7
    counts = [f"{reading.records:,}", f"{reading.rate:,.0f}", _count(reading.lag)]
    return [*counts, seconds(reading.p50), seconds(reading.p95), f"{reading.dead_letters:,}", f"{reading.batches:,}"]


def _line(message: Mapping[str, Any]) -> Text:
    data = message.get("data", {})
    reason = str(data.get("text", "")).splitlines()[:1]
    line = Text(overflow="ellipsis", no_wrap=True)
    line.append(f"{data.get('severity', ''):<9}", _SEVERITIES.get(str(data.get("severity")), ""))
    line.append(f"{data.get('detector', ''):<26}", "bold")
    return line.append("".join(reason))


def _status(frame: Frame) -> str:
    first = f"first notification after {frame.first:.1f} s" if frame.first is not None else "no notification yet"
    return ", ".join(filter(None, [f"{frame.elapsed:.0f} s", first, frame.notice]))

"""The verbs that only look: status, describe, peek, doctor."""

import sys
import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from lozenge.errors import UsageError
from lozenge_deploy.cli.options import NAME, OUTPUT, Format, folder_of, show

ALIVE_SECONDS = 60.0
"""Whoever has not reported for so long does not run."""
_BRIEF = (
    "app",
    "release",
    "records",
    "per_second",
    "lag",
    "emitted",
    "p95_seconds",
    "dead_letters",
    "cores",
    "memory_mb",
)


def status(
    name: Annotated[str | None, typer.Argument(help="One app; else all that run.")] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Again every second, until Ctrl-C.")] = False,
    output: OUTPUT = Format.TABLE,
) -> None:
    """Show what runs: release, throughput, lag, latency, dead letters."""
    from lozenge.kafka import KafkaSettings
    from lozenge_deploy.readings import Readings

    readings = Readings(KafkaSettings.load(), since=ALIVE_SECONDS)
    try:
        readings.catch_up()
        while True:
            rows = [row for row in _rows(readings) if name in (None, row["app"])]
            if name and not rows and not watch:
                raise UsageError(f"looking for {name}: it has not reported for {ALIVE_SECONDS:.0f} s")
            if watch and sys.stdout.isatty():
                typer.echo("\x1b[H\x1b[2J", nl=False)  # home, and nothing below
            if rows or output is Format.JSON:
                show(rows, output, brief=_BRIEF)
            else:
                typer.echo("nothing runs; `make demo` starts everything on this machine", err=True)
            if not watch:
                return
            time.sleep(1)
            readings.read()
    finally:
        readings.close()


def _rows(readings: Any) -> Iterator[dict[str, Any]]:
    for app in readings.apps():
        reading = readings.reading(app)
        yield {
            "app": app,
            "release": reading.release or None,
            "records": reading.records,
            "per_second": round(reading.rate, 1),
            "lag": reading.lag,
            "emitted": reading.emitted,
            "p50_seconds": _rounded(reading.p50),
            "p95_seconds": _rounded(reading.p95),
            "dead_letters": reading.dead_letters,
            "batches": reading.batches,
            "seen_seconds_ago": round(time.time() - reading.at),
        }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 2)


def describe(name: NAME = ".", output: OUTPUT = Format.TABLE) -> None:
    """Show what a detector declares: kind, key, topics, tables, resources."""
    from lozenge import topics
    from lozenge.declaration import parse

    folder = folder_of(name)
    file = folder / "pyproject.toml"
    project, version, declared = parse(file.read_text("utf-8"), str(file))
    facts = {"name": project, "version": version, **declared.model_dump(mode="json", exclude_none=True)}
    facts |= {
        "reads": topics.events_by(declared.key),
        "alerts": topics.alerts(project),
        "dead letters": topics.dead_letters(project),
        "state": topics.state(project),
        "group": project,
    }
    if output is Format.JSON:
        show([facts], output)
    else:
        show([{"what": what, "value": value} for what, value in facts.items() if value not in ({}, [])], output)


def peek(
    topic: Annotated[str, typer.Argument(help="A topic's full name.")],
    count: Annotated[int, typer.Option("-n", min=1, max=10_000, help="How many of the latest records.")] = 10,
    output: OUTPUT = Format.TABLE,
) -> None:
    """Show the latest records of a topic, decoded."""
    from lozenge.kafka import KafkaSettings
    from lozenge_deploy.peeking import latest

    show(
        list(latest(KafkaSettings.load(), topic, count)), output, brief=("partition", "offset", "time", "key", "value")
    )


def doctor(output: OUTPUT = Format.TABLE) -> None:
    """Check what Lozenge needs on this machine, and what to do about each thing that is missing."""
    from lozenge_deploy.fitness import examine

    findings = list(examine())
    show([{"what": f.what, "fit": "yes" if f.fit else "NO", "found": f.found} for f in findings], output)
    unfit = [finding for finding in findings if not finding.fit]
    for finding in unfit:
        typer.echo(f"{finding.what}: {finding.cure}", err=True)
    if unfit:
        raise typer.Exit(1)

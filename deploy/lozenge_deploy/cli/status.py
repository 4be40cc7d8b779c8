"""`lozenge status`: what runs, and of one app where it stands."""

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lozenge.errors import UsageError
from lozenge_deploy.cli.options import OUTPUT, Format, app_of, show

if TYPE_CHECKING:
    from lozenge.kafka import KafkaSettings
    from lozenge_deploy.readings import Readings

_BRIEF = (
    *("app", "release", "instances", "records", "per_second", "lag", "emitted", "p95_seconds", "dead_letters"),
    *("cores", "cpu_seconds", "memory_mb"),
)


def status(
    name: Annotated[str | None, typer.Argument(help="One app; else all that run.")] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Again every second, until Ctrl-C.")] = False,
    output: OUTPUT = Format.TABLE,
) -> None:
    """Show what runs: release, throughput, lag, latency, dead letters, cost; of one app, where it stands."""
    from lozenge.kafka import KafkaSettings
    from lozenge_deploy.readings import Readings

    kafka = KafkaSettings.load()
    readings = Readings(kafka)
    try:
        readings.catch_up()
        while True:
            if watch and sys.stdout.isatty():
                typer.echo("\x1b[H\x1b[2J", nl=False)  # home, and nothing below
            if name:
                _show_one(readings, kafka, app_of(name), output)
            else:
                _show_all(readings, output)
            if not watch:
                return
            time.sleep(1)
            readings.read()
    finally:
        readings.close()


def _show_all(readings: "Readings", output: Format) -> None:
    rows = [row for row in _rows(readings) if row["instances"]]
    if rows or output is Format.JSON:
        show(rows, output, brief=_BRIEF)
    else:
        typer.echo("nothing runs; `make demo` starts everything on this machine", err=True)


def _show_one(readings: "Readings", kafka: "KafkaSettings", name: str, output: Format) -> None:
    """One app, also if it does not run; raises UsageError if it never did."""
    rows = [row for row in _rows(readings) if row["app"] == name]
    if not rows:
        raise UsageError(f"looking for {name}: it has never reported", hint="`lozenge status` lists what runs")
    row = rows[0] | _standing(kafka, name)
    if output is not Format.JSON:
        typer.echo(_sentence(row))
    show([row], output, brief=(*_BRIEF, "alerts_last_hour"))


def _rows(readings: "Readings") -> Iterator[dict[str, Any]]:
    for app in readings.apps():
        reading = readings.reading(app)
        assert reading is not None
        yield {
            "app": app,
            "release": reading.release or None,
            "instances": reading.instances,
            "records": reading.records,
            "per_second": round(reading.rate, 1),
            "lag": reading.lag,
            "emitted": reading.emitted,
            "p50_seconds": _rounded(reading.p50),
            "p95_seconds": _rounded(reading.p95),
            "dead_letters": reading.dead_letters,
            "batches": reading.batches,
            "cores": round(reading.cores, 2),
            "cpu_seconds": round(reading.cpu_seconds, 1),
            "memory_mb": round(reading.memory_bytes / 1e6),
            "seen_seconds_ago": round(time.time() - reading.at),
        }


def _standing(kafka: "KafkaSettings", name: str) -> dict[str, Any]:
    """What the broker knows of an app, whether it runs or not; None where that says nothing."""
    from lozenge_deploy.standing import alerts_last_hour, standing

    where = standing(kafka, name)
    stamp = where.stamp if where else None
    return {
        "generation": stamp.generation if stamp else None,
        "batch": stamp.batch if stamp and stamp.batch >= 0 else None,
        "behind_offsets": where.behind if where else None,
        "behind_seconds": round(where.seconds, 1) if where else None,
        "alerts_last_hour": alerts_last_hour(kafka, name),
    }


def _sentence(row: dict[str, Any]) -> str:
    """What an operator wants to know first: who runs, how far it is, how far behind."""
    parts = [f"{row['app']} {row['release'] or ''}".strip()]
    if not row["instances"]:
        parts.append(f"which has not run for {row['seen_seconds_ago']} s")
    parts += [f"{what} {row[what]}" for what in ("generation", "batch") if row[what] is not None]
    if row["behind_offsets"] is None:
        return f"{', '.join(parts)}: it has not committed anything yet"
    return f"{', '.join(parts)}: {row['behind_offsets']} offsets and {row['behind_seconds']} s behind"


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 2)

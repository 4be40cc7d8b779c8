"""`lozenge status`: what should run and what does; of one app also its offsets and lag."""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from lozenge.apps import is_sink
from lozenge.errors import UsageError
from lozenge.platform_tables.state import TableState
from lozenge_deploy.cli.options import OUTPUT, app_of
from lozenge_deploy.cli.printing.output import OutputFormat, show
from lozenge_deploy.cli.printing.terminal import clear, echo

if TYPE_CHECKING:
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.protocol.declared_releases import AnyState
    from lozenge_deploy.control.deployments_view import Deployment
    from lozenge_deploy.observe.group_lag import GroupLag
    from lozenge_deploy.observe.metrics_reader import MetricsReader, Reading
    from lozenge_deploy.operations.streams.refused_releases import ReleaseRefusal

MANY_DEAD = 0.1
"""A higher share of dead letters among an app's input is reported as trouble."""
_BRIEF = (
    *("app", "phase", "release", "instances", "restarts", "records", "per_second", "lag", "emitted", "p95_seconds"),
    *("dead_letters", "cores", "cpu_seconds", "memory_mb"),
)


class Known(NamedTuple):
    """What is deployed: detectors, the refused releases of streams, and what else has releases; each by app."""

    members: "Mapping[str, Deployment]"
    refused: "Mapping[str, ReleaseRefusal]"
    declared: "Mapping[str, AnyState]"


def status(
    name: Annotated[str | None, typer.Argument(help="One app; by default all that run or should run.")] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh every second until Ctrl-C.")] = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Show all apps with phase, throughput, lag and cost; of one app also its offsets and guarantee.

    The cost of a detector with a shared JVM is that of its own work there; its memory has an equal share of the JVM's.
    """
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.kafka.stream_releases import FollowedStreams
    from lozenge_deploy.control.declared_apps import DeclaredApps
    from lozenge_deploy.control.deployments_view import Deployments
    from lozenge_deploy.observe.metrics_reader import MetricsReader
    from lozenge_deploy.operations.streams.refused_releases import refused_releases

    kafka = KafkaSettings.load()
    readings = MetricsReader(kafka)
    try:
        readings.catch_up()
        with (
            Deployments(kafka) as deployments,
            closing(FollowedStreams(kafka)) as streams,
            closing(DeclaredApps(kafka)) as declared,
        ):
            while True:
                known = Known(deployments.all(), refused_releases(streams.poll()), declared.poll())
                if watch:
                    clear()
                if name:
                    _show_one(readings, known, kafka, app_of(name), output)
                else:
                    _show_all(readings, known, kafka, output)
                if not watch:
                    return
                time.sleep(1)
                readings.read()
    finally:
        readings.close()


def _show_all(readings: "MetricsReader", known: Known, kafka: "KafkaSettings", output: OutputFormat) -> None:
    wanted = {*known.declared, *(name for name, member in known.members.items() if not member.retired)}
    from lozenge_deploy.observe.group_lag import lag_of

    rows = [row for row in _rows(readings, known) if row["instances"] or row["app"] in wanted]
    for row in rows:
        where = lag_of(kafka, row["app"])
        row |= _blocked(row, where)
        if not row["instances"] or (where and where.problem):  # no process reports its lag, or can know of it
            row["lag"] = where.offsets if where else None
    if not rows and output is not OutputFormat.JSON:
        echo(
            "no app reports yet: one that has just started does within seconds; `lozenge up` starts a platform",
            err=True,
        )
        return
    show(rows, output, brief=_BRIEF)
    for row in rows if output is not OutputFormat.JSON else ():
        if row["reason"]:
            echo(f"{row['app']} {row['phase'] or 'runs'}: {row['reason']}\n  -> {row['next']}")


def _show_one(readings: "MetricsReader", known: Known, kafka: "KafkaSettings", name: str, output: OutputFormat) -> None:
    """One app, also if it does not run; raises UsageError if it never ran and is not deployed."""
    from lozenge_deploy.observe.group_lag import lag_of

    rows = [row for row in _rows(readings, known) if row["app"] == name]
    if not rows:
        raise UsageError(f"looking for {name}: it has never reported", hint="`lozenge status` lists what runs")
    where = lag_of(kafka, name)
    row = rows[0] | _committed(kafka, name, where) | _guarantee(kafka, known.members.get(name))
    row |= _blocked(row, where)
    if where is not None and (where.problem or not _reports_its_lag(row)):
        row["lag"] = row["committed_lag"]  # newer than what it last reported
    if output is not OutputFormat.JSON:
        echo(_summary(row))
        if row["reason"]:
            echo(f"{row['reason']}\n  -> {row['next']}")
    show([row], output, brief=(*_BRIEF, "alerts_last_hour"))


def _rows(readings: "MetricsReader", known: Known) -> Iterator[dict[str, Any]]:
    from lozenge_deploy.operations.declarations.status import status_of

    for app in sorted({*readings.apps(), *known.members, *known.declared}):
        reading, member, state = readings.reading(app), known.members.get(app), known.declared.get(app)
        yield (
            {"app": app, **_deployed(member), **_measured(reading, member)}
            | (status_of(app, state, reading) if state is not None else {})
            | _dead_letters(app, reading, member)
            | _refused(app, known.refused)
            | _mappings(app, reading)
            | _table(app, reading)
            | _between_commits(app)
        )


def _deployed(member: "Deployment | None") -> dict[str, Any]:
    """What the control plane knows; None for an app that is not deployed through it."""
    if member is None:
        return dict.fromkeys(("goal", "phase", "restarts", "reason", "next", "fenced", "spark_host"))
    reason, following = member.problem or (None, None)
    return {
        "goal": member.spec.goal.value,
        "phase": member.phase,
        "restarts": member.observed.restarts if member.observed else 0,
        "reason": reason,
        "next": following,
        "fenced": member.fenced,
        "spark_host": (member.observed.spark_host or None) if member.observed else None,
    }


def _dead_letters(app: str, reading: "Reading | None", member: "Deployment | None") -> dict[str, Any]:
    """Reason and next step of an app that runs as it should, but fails on much of its input."""
    if reading is None or (member and member.problem) or reading.dead_share <= MANY_DEAD:
        return {}
    share = "all" if reading.dead_share >= 1 else f"{100 * reading.dead_share:.0f} %"
    reason = f"{share} of its newest input becomes dead letters"
    return {"reason": reason, "next": f"`lozenge dlq ls {app}` shows the reasons"}


def _blocked(row: Mapping[str, Any], where: "GroupLag | None") -> dict[str, Any]:
    """Reason and next step of an app whose input keeps it from its work, unless it has another reason."""
    if where is None or where.problem is None or row["reason"]:
        return {}
    following = "end the producer that holds it open: `kafka-transactions.sh list` names it"
    if where.lost:
        following = f"`lozenge offsets {row['app']} --earliest` accepts that and resumes"
    return {"reason": where.problem, "next": following}


def _between_commits(app: str) -> dict[str, Any]:
    """A sink commits once a minute: in between its lag grows, which says nothing of whether it keeps up."""
    return {"lag_grows": False, "catch_up_seconds": None} if is_sink(app) else {}


def _mappings(app: str, reading: "Reading | None") -> dict[str, Any]:
    """Reason and next step of upstream while the mapping of a source is not in force."""
    if reading is None or not reading.refused_mappings:
        return {}
    names = ", ".join(reading.refused_mappings)
    return {
        "reason": f"not in force is the mapping of {names}; the raw records of its topic wait",
        "next": f"`lozenge logs {app} --level error` has every problem; fix the file, then restart upstream",
    }


def _table(app: str, reading: "Reading | None") -> dict[str, Any]:
    """Reason and next step of the loader of a table while its source has no good version."""
    if reading is None or not reading.instances or reading.table_state in ("", TableState.GOOD):
        return {}
    reason = f"its source is {reading.table_state}; the last good version stays in force"
    return {"reason": reason, "next": f"`lozenge table show {app.partition('-')[2]}` says what is wrong"}


def _refused(app: str, refused: "Mapping[str, ReleaseRefusal]") -> dict[str, Any]:
    """Reason and next step of upstream while the release that is requested of its stream is refused."""
    found = refused.get(app)
    return found._asdict() if found is not None else {}


def _measured(reading: "Reading | None", member: "Deployment | None") -> dict[str, Any]:
    """What the app reported; zeros if it never did, and None for what is unknown."""
    release = (reading and reading.release) or (member and member.spec.release)
    return {
        "release": release or None,
        "instances": reading.instances if reading else 0,
        "records": reading.records if reading else 0,
        "per_second": round(reading.rate, 1) if reading else 0.0,
        "lag": reading.lag if reading else None,
        "catch_up_seconds": _seconds_left(reading),
        "lag_grows": reading is not None and reading.catch_up == float("inf"),
        "emitted": reading.emitted if reading else 0,
        "p50_seconds": _rounded(reading.p50 if reading else None),
        "p95_seconds": _rounded(reading.p95 if reading else None),
        "dead_letters": reading.dead_letters if reading else 0,
        "skipped": reading.skipped if reading else 0,
        "batches": reading.batches if reading else 0,
        "cores": round(reading.cores, 2) if reading else 0.0,
        "cpu_seconds": round(reading.cpu_seconds, 1) if reading else 0.0,
        "memory_mb": round(reading.memory_bytes / 1e6) if reading else 0,
        "reported_seconds_ago": round(time.time() - reading.at) if reading else None,
    }


def _committed(kafka: "KafkaSettings", name: str, where: "GroupLag | None") -> dict[str, Any]:
    """What the broker knows of an app, whether it runs or not; None where it knows nothing."""
    from lozenge_deploy.observe.group_lag import alerts_last_hour

    metadata = where.metadata if where else None
    return {
        "generation": (metadata.generation or None) if metadata else None,
        "batch": metadata.batch if metadata and metadata.batch >= 0 else None,
        "committed_lag": where.offsets if where else None,
        "committed_lag_seconds": round(where.seconds, 1) if where else None,
        "output_ahead": where.output_ahead if where else None,
        "alerts_last_hour": alerts_last_hour(kafka, name),
    }


def _guarantee(kafka: "KafkaSettings", member: "Deployment | None") -> dict[str, Any]:
    """Mode and guarantee of the deployed release, and what it may repeat; None for an app that is not deployed."""
    from lozenge_deploy.operations.throttle import repeats
    from lozenge_deploy.releases.release_store import Releases

    if member is None:
        return {"mode": None, "guarantee": None, "repeats": None}
    release = Releases(kafka).get(member.spec.detector, member.spec.release)
    declared = release.declaration
    return {"mode": declared.mode, "guarantee": declared.guarantee, "repeats": repeats(release, member.spec)}


def _summary(row: Mapping[str, Any]) -> str:
    """The first things an operator needs: release, phase, progress, lag, and which release it replaced."""
    parts = [f"{row['app']} {row['release'] or ''}".strip()]
    if row["guarantee"] not in (None, "exactly-once"):
        parts.append(f"{row['guarantee']} ({row['repeats']})" if row["repeats"] else row["guarantee"])
    if row["phase"] not in (None, "running"):
        parts.append(row["phase"])
    if not row["instances"]:
        ago = row["reported_seconds_ago"]
        parts.append("has never run" if ago is None else f"has not run for {ago} s")
    parts += [f"{what} {row[what]}" for what in ("generation", "batch") if row[what] is not None]
    if row["committed_lag"] is None:
        parts.append("nothing committed yet")
    else:
        committed = f"{row['committed_lag_seconds']} s and {row['committed_lag']} offsets"
        reported = f"{row['lag']} offsets (committed: {committed})"
        parts.append(f"lag {reported if _reports_its_lag(row) else committed}")
    if row["catch_up_seconds"]:
        parts.append(f"{row['catch_up_seconds']} s to catch up at the present rate")
    if row["lag_grows"]:
        parts.append("lag grows: more events arrive than it processes")
    if row["alerts_last_hour"] is not None:
        parts.append(f"{row['alerts_last_hour']} alerts in the last hour")
    if row["restarts"]:
        parts.append(f"{row['restarts']} restart{'s' if row['restarts'] > 1 else ''}")
    if row["dead_letters"]:
        unresolved = f"`lozenge dlq ls {row['app']}` shows the unresolved ones"
        parts.append(f"{row['dead_letters']} dead letters so far ({unresolved})")
    return "; ".join(part for part in (", ".join(parts), row["fenced"]) if part)


def _reports_its_lag(row: Mapping[str, Any]) -> bool:
    """Whether it publishes before it commits, and a running process reports its lag."""
    return bool(row["output_ahead"]) and bool(row["instances"])


def _seconds_left(reading: "Reading | None") -> int | None:
    """Seconds to catch up; None if the lag does not shrink, or is unknown."""
    if reading is None or reading.catch_up in (None, float("inf")):
        return None
    return round(reading.catch_up or 0.0)


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 2)

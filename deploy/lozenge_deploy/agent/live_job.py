"""Decisions about the live job: how it applied its spec, whether it is healthy, and what is reported of it."""

from dataclasses import replace
from datetime import timedelta

from lozenge.protocol.job_status import JobStatus
from lozenge_deploy.agent.actions import AppendEvent, Kill, RaisePriority, Send
from lozenge_deploy.agent.health import stuck
from lozenge_deploy.agent.observation import JobView
from lozenge_deploy.agent.tick import Tick, roll_back
from lozenge_deploy.control.records import ChangeOutcome, DetectorPhase, format_offsets


def update_live(tick: Tick, live: JobView) -> None:
    """Sends the newest spec to the live job, and reports how the job applied it."""
    generation = live.status.generation if live.status is not None else live.record.generation
    job_spec = tick.spec.job_spec(generation, standby=False)
    if live.spec != job_spec:
        tick.do(Send(live.id, job_spec))
        return
    if (status := live_status(tick, live)) is None:
        return
    if status.rejected and status.revision == tick.spec.revision:
        roll_back(tick, status.rejected)
        return
    report_live(tick, live, status)
    if status.circuit_open and tick.status.phase is not DetectorPhase.CIRCUIT_OPEN:
        tick.do(AppendEvent("circuit open", live.id, status.circuit_open))
    if status.revision == tick.spec.revision and tick.status.outcome is ChangeOutcome.WORKING:
        tick.report(outcome=ChangeOutcome.WATCHED if tick.spec.before is not None else ChangeOutcome.DONE)
    tick.report(
        phase=DetectorPhase.CIRCUIT_OPEN if status.circuit_open else DetectorPhase.RUNNING,
        reason=status.circuit_open or "; ".join(status.table_alarms),
    )


def live_status(tick: Tick, live: JobView) -> JobStatus | None:
    """The status of a job that is live; one that is not live in time is killed."""
    if live.is_live:
        return live.status
    if tick.seen.now - live.record.started_at > tick.timeouts.start:
        tick.do(Kill(live.id))
    return None


def report_live(tick: Tick, live: JobView, status: JobStatus) -> None:
    """Reports a live job, and records when it has become live or has other settings."""
    if tick.status.generation != status.generation:
        tick.do(RaisePriority(live.id))
        tick.remember(watch_started_at=tick.seen.now)
        tick.do(AppendEvent("live", live.id, _how_it_started(live, status)))
    elif tick.status.digest != status.digest:
        tick.do(AppendEvent("settings", live.id, f"{status.digest} from {format_offsets(status.since)}"))
    if tick.status.tables != status.tables and status.tables:
        tick.do(AppendEvent("tables", live.id, _tables_in_force(status)))
    for alarm in status.table_alarms:
        if alarm not in tick.status.table_alarms:
            tick.do(AppendEvent("table refused", live.id, alarm))
    tick.report(
        release=live.record.release,
        process=live.record.process,
        generation=status.generation,
        digest=status.digest,
        tables=status.tables,
        table_alarms=status.table_alarms,
        since=status.since,
        pid=status.pid,
        spark_host=live.record.spark_host,
    )


def _tables_in_force(status: JobStatus) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in sorted(status.tables.items()))
    return f"{versions} from {format_offsets(status.since)}"


def _how_it_started(live: JobView, status: JobStatus) -> str:
    began = live.record.started_at
    took = f"Spark after {status.session_started_at - began:.1f} s"
    if not status.since:  # one of several replicas may start without a partition
        return took
    return f"from {format_offsets(status.since)}; {took}, its query after {status.query_started_at - began:.1f} s"


def check_health(tick: Tick, live: JobView) -> None:
    """Kills a job that hangs, and ends its watch window: by a rollback if it is unhealthy, else in time."""
    if not tick.broker_stable:
        tick.remember(watch_started_at=tick.seen.now)
        return
    status, at, trigger = live.status, tick.seen.now, tick.seen.trigger
    if status is None or not live.is_live or tick.is_ending(live):
        return
    kill_if_hung(tick, live, status, trigger)
    if tick.status.outcome is not ChangeOutcome.WATCHED:
        return
    health = tick.state.restarts.health.sampled(status, at)
    tick.remember(restarts=replace(tick.state.restarts, health=health))
    window = max(tick.spec.watch, 1.5 * trigger.total_seconds())  # long enough for one commit
    if problem := health.problem(status, at, trigger, tick.broker_stable_seconds):
        roll_back(tick, problem)
    elif at - tick.state.watch_started_at > window:
        tick.report(outcome=ChangeOutcome.DONE)


def kill_if_hung(tick: Tick, live: JobView, status: JobStatus, trigger: timedelta) -> None:
    """Kills a live job whose batch does not end, unless it is ending already."""
    at = tick.seen.now
    is_stuck = stuck(status, at, trigger, tick.broker_stable_seconds, tick.timeouts.hung)
    if is_stuck and not tick.is_ending(live):
        tick.kill(live, "hung", f"no batch has ended for {at - status.last_progress_at:.0f} s")

"""Decisions about a standby: another release, or another process of the same release, is to replace the live job."""

from lozenge.protocol.job_status import JobPhase
from lozenge_deploy.agent.actions import AppendEvent, GoLive, Kill
from lozenge_deploy.agent.health import stuck
from lozenge_deploy.agent.live_job import kill_if_hung, live_status, report_live
from lozenge_deploy.agent.observation import JobView
from lozenge_deploy.agent.tick import Tick, count_exit, report_fenced, roll_back, start
from lozenge_deploy.control.records import DetectorPhase, Goal


def needs_standby(tick: Tick) -> bool:
    """State that is rebuilt or fresh is made by a standby, even if no job is live."""
    return tick.spec.state != "keep" and not tick.status.has(tick.spec)


def replace_live(tick: Tick) -> None:
    """Brings the replacement of the live job one step further."""
    if _keep_previous_running(tick):
        return
    if tick.successor is not None and not tick.successor.matches(tick.spec.process):
        tick.stop_successor()
    successor = tick.successor
    if successor is None:
        start(tick, tick.spec, standby=True, phase=DetectorPhase.STANDBY)
    elif successor.is_live:
        finish_cut_over(tick, successor)
    elif not successor.alive:
        _successor_failed(tick, successor)
    elif tick.state.cut_over_at is not None:
        if tick.broker_stable and tick.seen.now - tick.state.cut_over_at > tick.timeouts.cut_over:
            tick.do(Kill(successor.id))
    elif successor.status is not None and successor.status.phase is JobPhase.READY and tick.seen.prepared:
        _cut_over(tick, successor)
    elif tick.broker_stable and (slow := _standby_problem(tick, successor)):
        tick.stop_successor()
        roll_back(tick, slow)


def _cut_over(tick: Tick, successor: JobView) -> None:
    """Lets the successor go live. An unfenced job may still write, so it is stopped first."""
    if tick.live is not None and tick.live.writes_unfenced:
        report_fenced(tick, tick.live, {})
        tick.stop_live()
    stopping = (tick.seen.jobs[id] for id in tick.state.stopping if id in tick.seen.jobs)
    if any(job.writes_unfenced for job in stopping):
        return
    tick.remember(cut_over_at=tick.seen.now)
    tick.do(GoLive(successor.id, tick.spec))
    tick.report(phase=DetectorPhase.CUTTING_OVER)


def _keep_previous_running(tick: Tick) -> bool:
    """A rebuild takes long: meanwhile the previous release keeps running, and is restarted if it exits.

    Whether it is started now.
    """
    before = tick.spec.before
    if tick.spec.state != "rebuild" or before is None or tick.state.cut_over_at is not None:
        return False
    if before.goal is not Goal.RUNNING or not tick.status.has(before):
        return False
    if tick.live is None:
        return start(tick, before, of_previous=True)
    if (status := live_status(tick, tick.live)) is not None:
        report_live(tick, tick.live, status)
        tick.report(phase=DetectorPhase.STANDBY, reason="")
        if tick.broker_stable:
            kill_if_hung(tick, tick.live, status, tick.seen.previous_trigger)
    return False


def _standby_problem(tick: Tick, job: JobView) -> str:
    """Why a standby will not become ready; a rebuild may take long while it makes progress."""
    status, at = job.status, tick.seen.now
    if tick.spec.state == "rebuild" and status is not None and status.phase is JobPhase.STANDBY:
        is_stuck = stuck(status, at, tick.seen.trigger, tick.broker_stable_seconds, tick.timeouts.hung)
        return f"no batch has ended for {at - status.last_progress_at:.0f} s on standby" if is_stuck else ""
    late = at - job.record.started_at > tick.timeouts.start
    return f"it was not ready after {tick.timeouts.start:.0f} s" if late else ""


def _successor_failed(tick: Tick, ended: JobView) -> None:
    tick.forget_successor()
    reason = ended.kill_reason or (ended.exit_reason if ended.lost_host else ended.last_error)
    tick.do(AppendEvent("exited", ended.id, reason))
    if count_exit(tick, ended):
        tick.report(reason=reason, phase=tick.status.phase if tick.live else DetectorPhase.WAITING)
        roll_back(tick, f"it exited before it was live: {reason}")


def finish_cut_over(tick: Tick, successor: JobView) -> None:
    """The successor is live: it becomes the live job, and the previous one is stopped."""
    before, since = tick.live, successor.status.since if successor.status is not None else {}
    tick.remember(live=successor.id, successor=None, cut_over_at=None)
    tick.report(fenced_from=since)
    if before is not None:
        tick.stop(before)
        report_fenced(tick, before, since)

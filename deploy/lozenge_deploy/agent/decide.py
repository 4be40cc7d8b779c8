"""The next step of one replica towards its spec: a pure function of what was seen and what is remembered.

A replica keeps one live job, and a standby that is to replace it. A job that no controller has seen gets a role from
what it reports, so a controller that has just started needs nothing but its first tick.
"""

from lozenge_deploy.agent.actions import AppendEvent, Isolate, Kill, ReplicaState
from lozenge_deploy.agent.live_job import check_health, update_live
from lozenge_deploy.agent.observation import JobView, Observed
from lozenge_deploy.agent.replacement import finish_cut_over, needs_standby, replace_live
from lozenge_deploy.agent.start_backoff import StartBackoff
from lozenge_deploy.agent.tick import (
    TIMEOUTS,
    Decision,
    Tick,
    Timeouts,
    count_exit,
    report_fenced,
    roll_back,
    start,
)
from lozenge_deploy.control.records import ChangeOutcome, DeploymentSpec, DeploymentStatus, DetectorPhase, Goal
from lozenge_deploy.hosts.auto_isolation import HostTroubles, Trouble

ISOLATION_SECONDS = 10.0
"""How long a detector waits for the spec that gives it a JVM of its own, before it starts as it was."""


def decide(
    spec: DeploymentSpec,
    status: DeploymentStatus,
    state: ReplicaState,
    seen: Observed,
    timeouts: Timeouts = TIMEOUTS,
) -> Decision:
    """The next step towards `spec`; `status` is what was reported last."""
    tick = Tick(spec, status, state, seen, timeouts)
    _assign_roles(tick)
    _count_failed_start(tick)
    if spec.revision != status.revision:
        _start_revision(tick)
    _kill_overdue(tick)
    if spec.goal is not Goal.RUNNING:
        _stop_all(tick)
        return tick.decision()
    _reap(tick)
    _enforce_memory_limits(tick)
    if tick.live is not None and tick.live.matches(spec.process):
        tick.stop_successor()
    if tick.live is not None and tick.live.matches(spec.process):
        update_live(tick, tick.live)
        check_health(tick, tick.live)
    elif tick.live is not None or tick.successor is not None or needs_standby(tick):
        replace_live(tick)
    else:
        start(tick, spec, phase=DetectorPhase.STARTING)
    return tick.decision()


def _assign_roles(tick: Tick) -> None:
    """Gives a role to each job that has none, as an earlier agent left it; a job without one is stopped.

    One that has ended since is given the role of the live job, so that its exit is reported.
    """
    state, jobs = tick.state, tick.seen.jobs
    unknown = [job for id, job in jobs.items() if id not in {state.live, state.successor, *state.stopping}]
    running = [job for job in unknown if job.alive]
    live = sorted((job for job in running if job.is_live), key=lambda job: job.status.generation if job.status else 0)
    cutting_over = [job for job in running if not job.is_live and job.ordered_live]
    standbys = [job for job in running if not job.is_live and not job.ordered_live]
    if state.live is None and state.successor is None:
        if live and cutting_over:
            tick.remember(successor=cutting_over.pop(0).id, cut_over_at=tick.seen.now)
        elif standbys:
            tick.remember(successor=standbys.pop(0).id)
        if live:  # one that has just been replaced may still report that it is live
            tick.remember(live=live.pop().id)
        elif cutting_over:
            tick.remember(live=cutting_over.pop(0).id)
        if (adopted := tick.live or tick.successor) is not None:
            tick.remember(unsettled_at=tick.seen.now)
            tick.do(AppendEvent("adopted", adopted.id))
        elif unknown and tick.status.pid is not None:
            tick.remember(unsettled_at=tick.seen.now, live=unknown[0].id)
    for job in (*live, *cutting_over, *standbys):
        tick.stop(job)


def _count_failed_start(tick: Tick) -> None:
    """A failed start counts as an exit; it is rolled back at once if it was to replace a live job.

    Without a host to start on it does not count, and is rolled back if the replacement could not start for long.
    """
    failed, now = tick.seen.failed_start, tick.seen.now
    if failed is None:
        return
    restarts = tick.state.restarts_of(previous=failed.of_previous)
    counts = bool(failed.error) and not failed.no_host
    restarts = restarts.start_failed(now) if counts else restarts.not_counted(now)
    tick.state = tick.state.with_restarts(restarts, previous=failed.of_previous)
    if not failed.error:
        return
    tick.report(reason=failed.error, phase=tick.status.phase if failed.replaces else DetectorPhase.WAITING)
    is_present = tick.spec.revision == tick.status.revision and not failed.of_previous
    late = not failed.no_host or now - tick.state.watch_started_at > tick.timeouts.start
    if is_present and ((failed.replaces and late) or (counts and restarts.health.crash_loop(now))):
        roll_back(tick, failed.error)


def _start_revision(tick: Tick) -> None:
    """A new revision: the standby of an older one is stopped, unless it is live already."""
    if tick.successor is not None and tick.successor.is_live:
        finish_cut_over(tick, tick.successor)
    tick.stop_successor()
    tick.remember(restarts=StartBackoff(), previous_restarts=StartBackoff(), watch_started_at=tick.seen.now)
    tick.report(revision=tick.spec.revision, outcome=ChangeOutcome.WORKING, reason="")


def _kill_overdue(tick: Tick) -> None:
    stopping = [job for id in tick.state.stopping if (job := tick.seen.jobs.get(id)) is not None and job.alive]
    for job in stopping:
        if job.stopping_seconds > tick.timeouts.stop:
            tick.do(Kill(job.id))
    tick.remember(stopping=frozenset(job.id for job in stopping))


def _stop_all(tick: Tick) -> None:
    tick.stop_successor()
    tick.stop_live()
    if not tick.state.stopping:
        phase = DetectorPhase.PAUSED if tick.spec.goal is Goal.PAUSED else DetectorPhase.RETIRED
        tick.report(phase=phase, outcome=ChangeOutcome.DONE, pid=None, reason="")


def _reap(tick: Tick) -> None:
    """Handles the exit of the live job: it is started again later, or the change is rolled back."""
    ended = tick.live
    if ended is None or ended.alive:
        return
    tick.remember(live=None)
    if tick.state.cut_over_at is not None and tick.successor is not None and tick.successor.alive:
        # fenced: it has exited before its successor has reported that it is live
        report_fenced(tick, ended, {})
        return
    reason = ended.exit_reason
    tick.do(AppendEvent("exited", ended.id, reason))
    in_order = ended.ended_in_order
    restarts = tick.status.restarts + (not in_order and not ended.lost_host)
    tick.report(phase=DetectorPhase.WAITING, reason="" if in_order else reason, restarts=restarts, pid=None)
    is_previous = not ended.matches(tick.spec.process)
    counts = count_exit(tick, ended, of_previous=is_previous)
    if _isolate_after_trouble(tick, ended, reason):
        return
    if counts and not is_previous and (problem := tick.state.restarts.health.crash_loop(tick.seen.now)):
        roll_back(tick, f"{problem}; it {reason}")


def _isolate_after_trouble(tick: Tick, ended: JobView, reason: str) -> bool:
    """Gives a detector that had repeated trouble on shared hosts a JVM of its own; whether it does."""
    if not ended.record.spark_host or not (ended.lost_host or ended.kill_reason):
        return False
    own = ended.alone or not ended.lost_host
    troubles = tick.state.host_troubles.added(Trouble(tick.seen.now, reason, own))
    why = troubles.reason_to_move()
    tick.remember(host_troubles=HostTroubles() if why else troubles)
    if why:
        tick.do(Isolate(tick.spec, why))
        previous = not ended.matches(tick.spec.process)  # its next start is by the new spec, and on no shared host
        restarts = tick.state.restarts_of(previous=previous).not_before(tick.seen.now + ISOLATION_SECONDS)
        tick.state = tick.state.with_restarts(restarts, previous=previous)
    return bool(why)


def _enforce_memory_limits(tick: Tick) -> None:
    for job in (tick.live, tick.successor):
        if job is None or job.memory_mb is None or tick.is_ending(job):
            continue
        used, limit = job.memory_mb, job.record.memory_mb
        if used > limit:
            tick.kill(job, "out of memory", f"killed at {used} MB, its limit is {limit} MB")

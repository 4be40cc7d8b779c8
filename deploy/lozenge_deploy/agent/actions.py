"""What a controller remembers of a replica between two ticks, and what it may do in one, as values."""

from dataclasses import dataclass, field, replace

from lozenge.protocol.job_spec import JobSpec
from lozenge_deploy.agent.observation import JobId
from lozenge_deploy.agent.start_backoff import StartBackoff
from lozenge_deploy.control.records import DeploymentSpec, DetectorPhase
from lozenge_deploy.hosts.auto_isolation import HostTroubles


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """The role of each job, and since when. Times are Unix seconds.

    - `live` is the job that should be live, `successor` the standby that is to replace it.
    - `stopping` are the jobs that were requested to stop.
    - `cut_over_at`: since when the successor should be live; None before.
    - `watch_started_at`: the begin of the watch window, which begins again after each time without a broker.
    - `unsettled_at`: when jobs of an earlier agent were adopted, or the last Spark host of a job ended; 0 for never.
    - The exits of the previous release during a rebuild, `previous_restarts`, do not count against the new one.
    - `host_troubles` are the ends of its processes on shared hosts.
    """

    live: JobId | None = None
    successor: JobId | None = None
    stopping: frozenset[JobId] = frozenset()
    cut_over_at: float | None = None
    watch_started_at: float = 0.0
    unsettled_at: float = 0.0
    restarts: StartBackoff = field(default_factory=StartBackoff)
    previous_restarts: StartBackoff = field(default_factory=StartBackoff)
    host_troubles: HostTroubles = field(default_factory=HostTroubles)

    def restarts_of(self, *, previous: bool) -> StartBackoff:
        """The exits of the previous release during a rebuild, or those of the present revision."""
        return self.previous_restarts if previous else self.restarts

    def with_restarts(self, restarts: StartBackoff, *, previous: bool) -> "ReplicaState":
        """The state with other exits of the previous release, or of the present revision."""
        return replace(self, previous_restarts=restarts) if previous else replace(self, restarts=restarts)

    def with_started(self, job: JobId, *, standby: bool) -> "ReplicaState":
        """The state after the start of a job."""
        return replace(self, successor=job) if standby else replace(self, live=job)

    def with_cut_over_undone(self) -> "ReplicaState":
        """The state after a successor could not be sent the order to go live: the next tick decides again."""
        return replace(self, cut_over_at=None)


@dataclass(frozen=True, slots=True)
class Start:
    """Start a job of `spec`, as the live job or as its standby.

    Its phase is reported once it has started, if there is one to report. It may start `of_previous` release, and it may
    replace a live job.
    """

    spec: DeploymentSpec
    standby: bool = False
    replaces: bool = False
    of_previous: bool = False
    phase: DetectorPhase | None = None


@dataclass(frozen=True, slots=True)
class Send:
    """Send a job this spec."""

    job: JobId
    spec: JobSpec


@dataclass(frozen=True, slots=True)
class GoLive:
    """Send a standby the spec by which it goes live, with a generation above all others."""

    job: JobId
    spec: DeploymentSpec


@dataclass(frozen=True, slots=True)
class Terminate:
    """Request a job to stop at a batch boundary."""

    job: JobId


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill a job; `reason` is reported when it has exited."""

    job: JobId
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RaisePriority:
    """Give a job the priority of a live one."""

    job: JobId


@dataclass(frozen=True, slots=True)
class AppendEvent:
    """Append an event to the history, about a job if one is named."""

    what: str
    job: JobId | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RollBack:
    """Apply the spec before `spec`."""

    spec: DeploymentSpec
    reason: str


@dataclass(frozen=True, slots=True)
class Isolate:
    """Give the detector of `spec` a JVM of its own from now on."""

    spec: DeploymentSpec
    reason: str


Action = Start | Send | GoLive | Terminate | Kill | RaisePriority | AppendEvent | RollBack | Isolate

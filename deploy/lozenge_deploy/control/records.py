"""The records of the control topics, as JSON; keys are detector names."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from lozenge import validation
from lozenge.contracts.isolation import Isolation
from lozenge.contracts.record import format_positions
from lozenge.contracts.topics import MOST_PARTITIONS
from lozenge.durations import TextDuration
from lozenge.errors import ConfigError
from lozenge.protocol.job_spec import JobSpec


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True)  # unknown fields of a newer version are ignored


def format_offsets(offsets: Mapping[int, int]) -> str:
    """Offsets as text: "0:9120 1:8873"."""
    return format_positions(sorted(offsets.items()))


def now() -> datetime:
    """The present moment, aware UTC."""
    return datetime.now(UTC)


_Detector = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]


class Goal(StrEnum):
    """The state that a deployment spec requests."""

    RUNNING = "running"
    PAUSED = "paused"
    RETIRED = "retired"


class DeploymentSpec(_Record):
    """What is requested of a detector. Each change has a new `revision`.

    - `state`: the state that a release starts with when it replaces another one.
    - `cores`, `memory_mb`: None means as declared.
    - `isolation`: whether its Spark shares a JVM with other detectors; None means as declared.
    - `instances`: how many processes share the partitions.
    - `restart`: a counter; a higher one replaces the process by another of the same release.
    - `watch`: how many seconds a change is on trial. If it fails, the agent rolls back to `before`.
    - `undoes`: the revision that a rollback undoes.
    """

    detector: _Detector
    revision: str
    goal: Goal = Goal.RUNNING
    release: str
    settings: dict[str, Any] = {}
    max_batch: Annotated[int, Field(ge=1)] | None = None
    trigger: Annotated[TextDuration, Field(gt=timedelta())] | None = None
    cores: Annotated[int, Field(ge=1, le=64)] | None = None
    memory_mb: Annotated[int, Field(ge=450)] | None = None
    isolation: Isolation | None = None
    instances: Annotated[int, Field(ge=1, le=MOST_PARTITIONS)] = 1
    state: Literal["keep", "rebuild", "fresh"] = "keep"
    restart: int = 0
    watch: float = 300.0
    what: str = ""
    by: str = ""
    message: str = ""
    at: datetime = Field(default_factory=now)
    undoes: str = ""
    before: "DeploymentSpec | None" = None

    @model_validator(mode="after")
    def _one_instance_builds_state(self) -> "DeploymentSpec":
        if self.instances > 1 and self.state != "keep":
            raise ValueError(
                f"several instances cannot start with state `{self.state}`; "
                f"`lozenge scale {self.detector} --instances 1` first"
            )
        return self

    def job_spec(self, generation: int, *, standby: bool) -> JobSpec:
        """The spec of a job of this detector."""
        return JobSpec(
            revision=self.revision,
            generation=generation,
            standby=standby,
            settings=self.settings,
            max_batch=self.max_batch,
            trigger=self.trigger,
            shared=self.instances > 1,
        )

    def updated(self, **changes: Any) -> "DeploymentSpec":
        """A copy with `changes`; raises ConfigError if it is not valid."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        try:
            return DeploymentSpec.model_validate(fields | changes)
        except ValidationError as error:
            hint = "nothing has changed; correct the values and try again"
            found = validation.sentences(error)
            raise ConfigError(f"changing {self.detector}", problems=found, hint=hint) from error

    @property
    def process(self) -> tuple[Any, ...]:
        """The values that are fixed for the life of a process; a change of one needs another process."""
        return self.release, self.cores, self.memory_mb, self.isolation, self.restart


class DetectorPhase(StrEnum):
    """The phase of a detector, as its agent sees it.

    STANDBY: the live job continues until its standby is ready. CIRCUIT_OPEN: the job is paused because its code raises
    on too many records. PAUSED: by an operator.
    """

    PREPARING = "preparing"
    STARTING = "starting"
    RUNNING = "running"
    CIRCUIT_OPEN = "circuit open"
    STANDBY = "standby"
    CUTTING_OVER = "cutting over"
    WAITING = "waiting"
    PAUSED = "paused"
    RETIRED = "retired"


class ChangeOutcome(StrEnum):
    """The result of the newest change. `WATCHED`: it is live and on trial."""

    WORKING = "working"
    WATCHED = "watched"
    DONE = "done"
    FAILED = "failed"


class DeploymentStatus(_Record):
    """The observed state of a detector.

    - `reason`: why it is unhealthy; "" while it is healthy.
    - `release`, `process`, `generation`, `pid`: of the live job.
    - `restarts`: how often a live job has exited by itself; the end of a Spark host is not counted.
    - `spark_host`: the Spark host that the live job shares; "" if its JVM is its own.
    - `tables`, `table_alarms`: the versions of its reference tables, and why files are refused.
    - `since`: the offsets from which the newest settings, tables or release apply.
    - `fenced`, `fenced_at`, `fenced_from`: the release that the live job replaced, when and at which offsets.
    - `location`: host and folder of its processes.
    - `instances`: the status of each of several; the other fields describe all, or the first where they differ.
    """

    detector: _Detector
    revision: str = ""
    outcome: ChangeOutcome = ChangeOutcome.WORKING
    phase: DetectorPhase = DetectorPhase.PREPARING
    reason: str = ""
    release: str = ""
    process: list[Any] = []
    generation: int = 0
    digest: str = ""
    tables: dict[str, str] = {}
    table_alarms: list[str] = []
    since: dict[int, int] = {}
    fenced: str = ""
    fenced_at: datetime | None = None
    fenced_from: dict[int, int] = {}
    restarts: int = 0
    pid: int | None = None
    spark_host: str = ""
    location: str = ""
    instances: list["DeploymentStatus"] = []
    at: datetime = Field(default_factory=now)

    def seen_from(self, location: str) -> "DeploymentStatus":
        """The status for an agent at `location`, which has no access to processes elsewhere."""
        mine = {"location": location, "pid": self.pid if self.location == location else None}
        return self.model_copy(update=mine | {"instances": [one.seen_from(location) for one in self.instances]})

    def has(self, spec: DeploymentSpec) -> bool:
        """Whether the live job is the process that `spec` requests."""
        return self.process == list(spec.process)


class HistoryEvent(_Record):
    """One entry of a detector's history. The topic keeps it without a time limit."""

    detector: str
    what: str
    release: str = ""
    generation: int = 0
    by: str = ""
    detail: str = ""
    at: datetime = Field(default_factory=now)


class Lease(_Record):
    """The lease of the leader. It is valid for some seconds after its record was seen; "" as `agent` means resigned."""

    agent: str
    host: str
    folder: str
    at: datetime = Field(default_factory=now)

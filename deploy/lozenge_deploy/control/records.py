"""The records of the control topics, as JSON; keys are detector names."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lozenge.contracts.record import places_of
from lozenge.contracts.topics import MOST_PARTITIONS
from lozenge.durations import TextDuration
from lozenge.errors import ConfigError
from lozenge.protocol.job_spec import JobSpec


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True)  # unknown fields of a newer version are left aside


def places(offsets: Mapping[int, int]) -> str:
    """Offsets as people read them: "0:9120 1:8873"."""
    return places_of(sorted(offsets.items()))


def now() -> datetime:
    """The present moment, aware UTC."""
    return datetime.now(UTC)


class Goal(StrEnum):
    """What is wanted of a detector."""

    RUNNING = "running"
    PAUSED = "paused"
    RETIRED = "retired"


class DeploymentSpec(_Record):
    """What a detector should be. Each change of it has a `revision` of its own.

    `state` is what a release begins with that takes over from another one. None leaves resources as declared.
    `instances` is how many processes share its partitions.
    `restart` counts: a higher one replaces the process by another of the same release. `watch` is how long
    a change is judged before it counts as good, in seconds; `before` is what to go back to if it is not, and
    `undoes` the revision that was not.
    """

    detector: str
    revision: str
    goal: Goal = Goal.RUNNING
    release: str
    settings: dict[str, Any] = {}
    max_batch: Annotated[int, Field(ge=1)] | None = None
    trigger: Annotated[TextDuration, Field(gt=timedelta())] | None = None
    cores: Annotated[int, Field(ge=1, le=64)] | None = None
    memory_mb: Annotated[int, Field(ge=450)] | None = None
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
    def _one_makes_memory(self) -> "DeploymentSpec":
        if self.instances > 1 and self.state != "keep":
            raise ValueError(
                f"several instances cannot begin with a {self.state} memory; "
                f"`lozenge scale {self.detector} --instances 1` first"
            )
        return self

    def job_spec(self, generation: int, *, standby: bool) -> JobSpec:
        """What a job of this detector is told."""
        return JobSpec(
            revision=self.revision,
            generation=generation,
            standby=standby,
            settings=self.settings,
            max_batch=self.max_batch,
            trigger=self.trigger,
            shared=self.instances > 1,
        )

    def but(self, **changes: Any) -> "DeploymentSpec":
        """The same with `changes`; raises ConfigError for what no detector can be."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        try:
            return DeploymentSpec.model_validate(fields | changes)
        except ValidationError as error:
            problems = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
            hint = "ask for something else; nothing has changed"
            raise ConfigError(f"changing {self.detector}", problems=problems, hint=hint) from error

    @property
    def process(self) -> tuple[Any, ...]:
        """What cannot change within a process: two that differ in it need two processes."""
        return self.release, self.cores, self.memory_mb, self.restart


class Phase(StrEnum):
    """Where a detector stands, as its agent sees it.

    STANDING_BY: the live job goes on until another one is ready. PARKED: it runs, but its code raises on too much.
    """

    PREPARING = "preparing"
    STARTING = "starting"
    RUNNING = "running"
    PARKED = "parked"
    STANDBY = "standing by"
    TAKING_OVER = "taking over"
    WAITING = "waiting"
    PAUSED = "paused"
    RETIRED = "retired"


class Outcome(StrEnum):
    """How the newest change went. `WATCHED`: it is live, and is judged for some time yet."""

    WORKING = "working"
    WATCHED = "watched"
    DONE = "done"
    FAILED = "failed"


class DeploymentStatus(_Record):
    """How a detector is. `reason` says why it is not well; `release`, `process` and `generation` are the live job's.

    `since` are the offsets from which on the newest settings or release hold; `fenced_from` those where the live
    job relieved another one, of the release `fenced`. `place` is the host and folder of its processes. Of several
    `instances` there is a state of each; the rest tells of all of them, or of the first one where they differ.
    """

    detector: str
    revision: str = ""
    outcome: Outcome = Outcome.WORKING
    phase: Phase = Phase.PREPARING
    reason: str = ""
    release: str = ""
    process: list[Any] = []
    generation: int = 0
    digest: str = ""
    since: dict[int, int] = {}
    fenced: str = ""
    fenced_at: datetime | None = None
    fenced_from: dict[int, int] = {}
    restarts: int = 0
    pid: int | None = None
    place: str = ""
    instances: list["DeploymentStatus"] = []
    at: datetime = Field(default_factory=now)

    def seen_from(self, place: str) -> "DeploymentStatus":
        """The same for an agent at `place`, to which processes elsewhere are none."""
        mine = {"place": place, "pid": self.pid if self.place == place else None}
        return self.model_copy(update=mine | {"instances": [one.seen_from(place) for one in self.instances]})

    def has(self, desired: DeploymentSpec) -> bool:
        """Whether the live job is the process that `desired` wants."""
        return self.process == list(desired.process)


class HistoryEvent(_Record):
    """One line of a detector's history, which is kept for ever."""

    detector: str
    what: str
    release: str = ""
    generation: int = 0
    by: str = ""
    detail: str = ""
    at: datetime = Field(default_factory=now)


class Lease(_Record):
    """Who leads. It holds for some seconds after its record was seen; an `agent` of "" has stepped down."""

    agent: str
    host: str
    folder: str
    at: datetime = Field(default_factory=now)

"""What whoever runs a job tells it while it runs: a file, replaced as a whole, that the job looks at.

A file outlives both sides and needs no connection: a new agent goes on where the old one was killed, and a
person can read what was ordered.
"""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lozenge.durations import TextDuration
from lozenge.errors import ConfigError
from lozenge.job.settings import JobSettings, overrides
from lozenge.process.atomic_write import replace

ORDER = "order.json"


class JobSpec(BaseModel):
    """Who a job is to be, and what may change while it runs.

    `revision` names the change that it carries out; `generation` rises with every order to go live. A job that
    stands by judges what comes but tells nothing, until an order says that it no longer does. One that is `shared`
    judges only the partitions that it is given among the instances of its detector. None leaves `max_batch` and
    `trigger` as declared.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    revision: str = ""
    generation: int = 1
    standby: bool = False
    shared: bool = False
    settings: dict[str, Any] = {}
    max_batch: Annotated[int, Field(ge=1)] | None = None
    trigger: Annotated[TextDuration, Field(gt=timedelta())] | None = None

    def give(self, folder: Path) -> None:
        """Orders it of the job in `folder`."""
        replace(folder / ORDER, self.model_dump_json())


class JobSpecFile:
    """The orders to one job: those in its folder, or the one of its environment, which stays."""

    def __init__(self, job: JobSettings) -> None:
        """Raises ConfigError if there is no readable order."""
        self._file = job.folder / ORDER if job.folder else None
        self._seen = self._mark()  # before it is read: an order that comes in between is a newer one
        self.current = (
            read_job_spec(job.folder)
            if job.folder
            else JobSpec(generation=job.generation, settings=overrides(job.settings))
        )

    def newer(self) -> JobSpec | None:
        """The order, if another one was given since the last call; raises ConfigError, once, if it cannot be read."""
        if self._file is None or (mark := self._mark()) == self._seen:
            return None
        self._seen = mark
        self.current = read_job_spec(self._file.parent)
        return self.current

    def _mark(self) -> tuple[int, int]:
        if self._file is None or not self._file.exists():
            return 0, 0
        stat = self._file.stat()
        return stat.st_ino, stat.st_mtime_ns


def read_job_spec(folder: Path) -> JobSpec:
    """The order in a job's folder; raises ConfigError if there is none that can be read."""
    file = folder / ORDER
    try:
        return JobSpec.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise ConfigError(f"reading the order {file}: {error}", hint="let the agent give it anew") from error

"""What a job should do: a file in its folder, which the agent replaces as a whole and the job polls.

The file outlives both sides and needs no connection. A new agent continues where the last one stopped, and people can
read it.
"""

import json
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lozenge.durations import TextDuration
from lozenge.errors import ConfigError
from lozenge.process.atomic_write import replace
from lozenge.validation import problem_of

JOB_SPEC = "job_spec.json"
"""The name of the file."""


class JobSpec(BaseModel):
    """Which job a process should be, and what may change while it runs.

    `revision` names the change that the spec carries out. `generation` rises with every spec that makes a job live. A
    `standby` job processes events and buffers its output. A `shared` job processes only the partitions that it is
    assigned among the instances of its detector. None leaves `max_batch` and `trigger` as declared.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    revision: str = ""
    generation: int = 1
    standby: bool = False
    shared: bool = False
    settings: dict[str, Any] = {}
    max_batch: Annotated[int, Field(ge=1)] | None = None
    trigger: Annotated[TextDuration, Field(gt=timedelta())] | None = None

    def write(self, folder: Path) -> None:
        """Makes this the spec of the job in `folder`."""
        replace(folder / JOB_SPEC, self.model_dump_json())


def read_job_spec(folder: Path) -> JobSpec:
    """The spec in a job's folder; raises ConfigError if it is missing or not valid."""
    file = folder / JOB_SPEC
    try:
        return JobSpec.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise ConfigError(
            f"reading the job spec {file}: {problem_of(error)}", hint="the agent writes it again"
        ) from error


def parse_overrides(text: str) -> dict[str, Any]:
    """Settings that replace defaults, written as a JSON object; raises ConfigError."""
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"reading settings: not JSON: {error}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"reading settings: {text} is no JSON object", hint='write {"name": value}')
    return values

"""The settings of one start of a job, from `LOZENGE_JOB_*` environment variables."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError
from pydantic_settings import SettingsConfigDict

from lozenge.detector.definition import Settings
from lozenge.detector.loader import LoadedDetector
from lozenge.errors import ConfigError
from lozenge.process.env_settings import FromEnvironment, this_start


class JobSettings(FromEnvironment):
    """How one process of a job starts.

    - `release` is the release that its alerts name.
    - `generation` rises with every start of the same detector.
    - `live`: a job that is not live has its own group and topics, and shares nothing with the live one.
    - `work` is the folder of the checkpoints.
    - `settings` overrides the detector's settings, as JSON.
    - `folder` belongs to this job alone: it has the job spec, the status and the checkpoint. The spec then replaces
      `generation` and `settings`.
    - `state` is the state with which a standby starts: the stored state, one rebuilt from the topic, or none.
    - `cores` and `memory_mb`: None means as declared.
    - `master` is a Spark cluster, such as spark://host:7077, whose executors read and process events with at most
      `cores` cores. An aggregate's `work` must then be a folder that all of them can write.
    - `short_batches` is how many batches in Real-Time Mode last only two seconds, see `realtime_batches`.
    """

    model_config = SettingsConfigDict(env_prefix="LOZENGE_JOB_")

    release: str = "dev"
    generation: int = 1
    instance: str = Field(default_factory=this_start)
    live: bool = True
    work: Path = Path(".lozenge")
    settings: str = "{}"
    folder: Path | None = None
    state: Literal["keep", "rebuild", "fresh"] = "keep"
    cores: Annotated[int, Field(ge=1)] | None = None
    memory_mb: Annotated[int, Field(ge=450)] | None = None
    master: str | None = None
    short_batches: Annotated[int, Field(ge=0)] | None = None
    debug: bool = False


def detector_settings(loaded: LoadedDetector, overrides: Mapping[str, Any]) -> Settings:
    """The detector's settings with `overrides` in place of defaults; raises ConfigError with every problem."""
    try:
        settings: Settings = loaded.detector.settings.model_validate(overrides)
        return settings
    except ValidationError as error:
        problems = [f"{'.'.join(str(p) for p in e['loc']) or 'settings'}: {_message(e)}" for e in error.errors()]
        names = ", ".join(loaded.detector.settings.model_fields) or "none"
        raise ConfigError(
            f"reading the settings of {loaded.name}: {len(problems)} problem(s)",
            problems=problems,
            hint=f"its settings are {names}; nothing was changed",
        ) from error


def _message(problem: Mapping[str, Any]) -> str:
    return "there is no such setting" if problem["type"] == "extra_forbidden" else str(problem["msg"])

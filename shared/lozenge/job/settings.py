"""What whoever starts a job tells it, through `LOZENGE_JOB_*` environment variables."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError
from pydantic_settings import SettingsConfigDict

from lozenge.detector.definition import Settings
from lozenge.detector.loader import LoadedDetector
from lozenge.detector.manifest import SHORT_BATCHES
from lozenge.errors import ConfigError
from lozenge.process.env_settings import THIS_START, FromEnvironment


class JobSettings(FromEnvironment):
    """One start order.

    `generation` must rise with every start order of the same detector; `release` is what alerts name;
    `live` false means a process beside the live one: own group, own topics, nothing shared. `work` holds
    the checkpoints. `settings` overrides the detector's settings as JSON.

    With a `folder` of its own the job keeps its checkpoint and its report there, and generation, settings and
    what else may change while it runs come from the order in it. `state` is what it begins with when it stands by:
    what is stored, what the topic's events make of it, or nothing. None leaves `cores` and `memory_mb` as declared.

    A `master` is the Spark cluster whose executors read and judge, say spark://host:7077, of which the job takes no
    more than its `cores`; an aggregate's `work` must then lie where all of them can write. Without one the job does it.

    In Real-Time Mode the first `short_batches` batches last two seconds, see `batch_length`.
    """

    model_config = SettingsConfigDict(env_prefix="LOZENGE_JOB_")

    release: str = "dev"
    generation: int = 1
    instance: str = THIS_START
    live: bool = True
    work: Path = Path(".lozenge")
    settings: str = "{}"
    folder: Path | None = None
    state: Literal["keep", "rebuild", "fresh"] = "keep"
    cores: Annotated[int, Field(ge=1)] | None = None
    memory_mb: Annotated[int, Field(ge=450)] | None = None
    master: str | None = None
    short_batches: Annotated[int, Field(ge=0)] = SHORT_BATCHES
    debug: bool = False


def detector_settings(loaded: LoadedDetector, values: Mapping[str, Any]) -> Settings:
    """The detector's settings with `values` in place of defaults; raises ConfigError with every problem."""
    try:
        settings: Settings = loaded.detector.settings.model_validate(values)
        return settings
    except ValidationError as error:
        problems = [f"{'.'.join(str(p) for p in e['loc']) or 'settings'}: {_said(e)}" for e in error.errors()]
        there = ", ".join(loaded.detector.settings.model_fields) or "none"
        raise ConfigError(
            f"reading the settings of {loaded.name}: {len(problems)} problem(s)",
            problems=problems,
            hint=f"its settings are {there}; nothing has changed",
        ) from error


def _said(problem: Mapping[str, Any]) -> str:
    return "there is no such setting" if problem["type"] == "extra_forbidden" else str(problem["msg"])

"""The settings of one start of a job, from `LOZENGE_JOB_*` environment variables."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError
from pydantic_settings import SettingsConfigDict

from lozenge import validation
from lozenge.detector.definition import Settings
from lozenge.detector.loader import LoadedDetector
from lozenge.errors import ConfigError
from lozenge.process.env_settings import FromEnvironment, this_start


class JobSettings(FromEnvironment):
    """How one process of a job starts. The agent sets these for the jobs that it starts."""

    model_config = SettingsConfigDict(env_prefix="LOZENGE_JOB_")

    release: str = "dev"
    """The release that its alerts name."""

    generation: int = 1
    """Rises with every start of the same detector."""

    instance: str = Field(default_factory=this_start)
    """Its name in metrics and logs, unique among starts; made of host, process and time unless set."""

    live: bool = True
    """A job that is not live has its own group and topics, and shares nothing with the live one."""

    work: Path = Path(".lozenge")
    """The folder of the checkpoints."""

    settings: str = "{}"
    """Values that replace the detector's settings, as JSON."""

    folder: Path | None = None
    """A folder that belongs to this job alone, with its job spec, status and checkpoint. The spec then replaces
    `generation` and `settings`."""

    state: Literal["keep", "rebuild", "fresh"] = "keep"
    """The state with which a standby starts: the stored state, one rebuilt from the topic, or none."""

    cores: Annotated[int, Field(ge=1)] | None = None
    """Tasks that run at once; as declared unless set."""

    memory_mb: Annotated[int, Field(ge=450)] | None = None
    """Largest heap of its JVM; as declared unless set."""

    master: str | None = None
    """A Spark cluster, such as `spark://host:7077`, whose executors read and process events with at most `cores` cores.
    An aggregate's `work` must then be a folder that all of them can write."""

    host: Path | None = None
    """The folder of a Spark host, as `python -m lozenge.host FOLDER` makes it. The job then has a session in its JVM,
    with the cores and the memory of the host, instead of a JVM of its own."""

    short_batches: Annotated[int, Field(ge=0)] | None = None
    """How many of the first batches in Real-Time Mode last two seconds, so that slow first commits are soon over."""

    debug: bool = False
    """Whether errors are shown with their stack."""

    def own_folder(self, app: str) -> Path:
        """Where this job keeps what the next start of its release finds again."""
        return self.folder or self.work / app / self.release

    def tables_folder(self, app: str) -> Path | None:
        """Where the last good versions of its tables survive a restart; None if they need not."""
        return self.own_folder(app) / "tables" if self.live else None


def detector_settings(loaded: LoadedDetector, overrides: Mapping[str, Any]) -> Settings:
    """The detector's settings with `overrides` in place of defaults; raises ConfigError with every problem."""
    try:
        settings: Settings = loaded.detector.settings.model_validate(overrides)
        return settings
    except ValidationError as error:
        problems = [
            f"{'.'.join(str(p) for p in e['loc']) or 'settings'}: {_message(e)}" for e in validation.problems(error)
        ]
        names = ", ".join(loaded.detector.settings.model_fields) or "none"
        raise ConfigError(
            f"reading the settings of {loaded.name}: {len(problems)} problem(s)",
            problems=problems,
            hint=f"its settings are {names}; nothing was changed",
        ) from error


def _message(problem: Mapping[str, Any]) -> str:
    return "there is no such setting" if problem["type"] == "extra_forbidden" else str(problem["msg"])

"""What whoever starts a job tells it, through `LOZENGE_JOB_*` environment variables."""

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import SettingsConfigDict

from lozenge.detector import Settings
from lozenge.environment import THIS_START, FromEnvironment
from lozenge.errors import ConfigError
from lozenge.loading import Loaded


class JobSettings(FromEnvironment):
    """One start order.

    `generation` must rise with every start order of the same detector; `release` is what alerts name;
    `live` false means a process beside the live one: own group, own topics, nothing shared. `work` holds
    the checkpoints. `settings` overrides the detector's settings as JSON.
    """

    model_config = SettingsConfigDict(env_prefix="LOZENGE_JOB_")

    release: str = "dev"
    generation: int = 1
    instance: str = THIS_START
    live: bool = True
    work: Path = Path(".lozenge")
    settings: str = "{}"
    debug: bool = False


def detector_settings(loaded: Loaded, overrides: str) -> Settings:
    """The detector's settings with `overrides` (JSON object) applied; raises ConfigError with every problem."""
    try:
        values: Any = json.loads(overrides)
        settings: Settings = loaded.detector.settings.model_validate(values)
        return settings
    except json.JSONDecodeError as error:
        raise ConfigError(f"reading LOZENGE_JOB_SETTINGS for {loaded.name}: not JSON: {error}") from error
    except ValidationError as error:
        problems = [f"{'.'.join(str(p) for p in e['loc']) or 'settings'}: {e['msg']}" for e in error.errors()]
        raise ConfigError(
            f"reading LOZENGE_JOB_SETTINGS for {loaded.name}: {len(problems)} problem(s)", problems=problems
        ) from error

"""The platform that runs on this machine in a folder, as its own process says in a file there."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

DEFAULT = Path(".lozenge")
"""The folder of a platform, in that of the project, unless another is named."""
STATE = "platform.json"
BOOTSTRAP_VARIABLE = "LOZENGE_KAFKA_BOOTSTRAP"


def running(folder: Path) -> dict[str, Any] | None:
    """The newest status of the platform in `folder`; None if it does not run."""
    try:
        state: dict[str, Any] = json.loads((folder / STATE).read_text())
    except (OSError, ValueError):
        return None
    return state if isinstance(state, dict) and alive(state.get("pid", -1)) else None


def alive(pid: int) -> bool:
    """Whether process `pid` is a platform that still runs."""
    import psutil

    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and "lozenge_deploy.local.platform" in process.cmdline()
    except psutil.Error:
        return False


def environment_of(pid: int) -> dict[str, str] | None:
    """The variables with which process `pid` was started; None if that is not known."""
    import psutil

    try:
        return psutil.Process(pid).environ() or None  # a process that has given itself a title has none
    except psutil.Error:
        return None


def bootstrap_near(here: Path) -> str | None:
    """The broker of the platform that runs in the default folder of `here`, or of the nearest folder above.

    None if there is none.
    """
    for folder in (here, *here.parents):
        if (state := running(folder / DEFAULT)) is not None:
            return str(state["bootstrap"])
    return None


def variables_near(here: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """What an `environment` lacks for a command in `here` to find the platform that runs there.

    Nothing if it names a broker, or if no platform runs there.
    """
    if BOOTSTRAP_VARIABLE in environment or (found := bootstrap_near(here)) is None:
        return {}
    return {BOOTSTRAP_VARIABLE: found}

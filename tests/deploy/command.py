"""The `lozenge` command as a process, for tests."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def lozenge(*arguments: str, cwd: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "lozenge_deploy.cli", *arguments]
    return subprocess.run(command, cwd=cwd, env=surroundings(**variables), capture_output=True, text=True, timeout=400)


def surroundings(**variables: str) -> dict[str, str]:
    """The environment of a person with this checkout and nothing set for Kafka but `variables`."""
    paths = os.pathsep.join(str(ROOT / source) for source in ("shared", "deploy"))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOZENGE_KAFKA_")}
    return kept | {"PYTHONPATH": paths, "NO_COLOR": "1", "COLUMNS": "200"} | variables

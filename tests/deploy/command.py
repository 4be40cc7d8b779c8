"""The `lozenge` command for tests: as a process, or in the process of the test."""

import contextlib
import io
import os
import subprocess
import sys
import traceback
from pathlib import Path
from unittest import mock

from lozenge_deploy.cli.__main__ import main

ROOT = Path(__file__).parents[2]


def lozenge(*arguments: str, cwd: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Runs a command as a process."""
    command = [sys.executable, "-m", "lozenge_deploy.cli", *arguments]
    return subprocess.run(command, cwd=cwd, env=surroundings(**variables), capture_output=True, text=True, timeout=400)


def invoke(*arguments: str, cwd: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Runs a command in this process: the same streams and exit code, without a second of imports."""
    out, errors = io.StringIO(), io.StringIO()
    with (
        mock.patch.dict(os.environ, surroundings(**variables), clear=True),
        mock.patch.object(os, "nice"),  # it would last
        mock.patch.multiple(sys, argv=["lozenge", *arguments], excepthook=sys.excepthook),
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
    ):
        code = _exit_code()
    return subprocess.CompletedProcess(["lozenge", *arguments], code, out.getvalue(), errors.getvalue())


def _exit_code() -> int:
    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def surroundings(**variables: str) -> dict[str, str]:
    """The environment of a person with this checkout and nothing set for Kafka but `variables`."""
    paths = os.pathsep.join(str(ROOT / source) for source in ("shared", "deploy"))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOZENGE_KAFKA_")}
    return kept | {"PYTHONPATH": paths, "NO_COLOR": "1", "COLUMNS": "200"} | variables

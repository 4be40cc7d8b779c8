"""The command `lozenge` in its first moments."""

import signal
import subprocess
import sys
from pathlib import Path

from tests.deploy.command import surroundings

INTERRUPTING = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n"


def test_ctrl_c_while_the_command_imports_ends_it_without_a_stack(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text(INTERRUPTING, "utf-8")
    environment = surroundings()
    environment["PYTHONPATH"] = f"{tmp_path}:{environment['PYTHONPATH']}"
    command = [sys.executable, "-c", "from lozenge_deploy.command import main; main()", "--version"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (-signal.SIGINT, "")


def test_the_command_runs_as_its_modules_do() -> None:
    command = [sys.executable, "-c", "from lozenge_deploy.command import main; main()", "--version"]
    run = subprocess.run(command, env=surroundings(), capture_output=True, text=True, timeout=60)
    assert run.stdout.startswith("lozenge "), run.stderr

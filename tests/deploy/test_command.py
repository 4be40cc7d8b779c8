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


def test_ctrl_c_where_nothing_handles_it_ends_the_command_without_a_stack(tmp_path: Path) -> None:
    interrupted = (
        "import os, signal, typer; from lozenge_deploy.cli import __main__ as cli\n"
        "typer.main.get_command = lambda app: os.kill(os.getpid(), signal.SIGINT)\n"
        "from lozenge_deploy.command import main; main()"
    )
    command = [sys.executable, "-c", interrupted, "--version"]
    run = subprocess.run(command, env=surroundings(), capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (130, "")


def test_the_command_runs_as_its_modules_do() -> None:
    command = [sys.executable, "-c", "from lozenge_deploy.command import main; main()", "--version"]
    run = subprocess.run(command, env=surroundings(), capture_output=True, text=True, timeout=60)
    assert run.stdout.startswith("lozenge "), run.stderr

"""A detached process has a session, a log, a folder and an environment of its own."""

import os
import subprocess
import sys
from pathlib import Path

import psutil

from lozenge.process.detached import start_detached
from tests.waiting import until


def test_what_it_prints_is_appended_to_its_log(tmp_path: Path) -> None:
    log, folder = tmp_path / "log", tmp_path / "folder"
    log.write_text("before\n")
    folder.mkdir()
    script = 'pwd; echo "$NAMED" >&2; cat'
    process = start_detached(["sh", "-c", script], log=log, folder=folder, environment={"NAMED": "value"})
    assert process.wait() == 0
    assert log.read_text() == f"before\n{folder}\nvalue\n"


def test_it_outlives_its_starter_and_a_signal_to_the_group_of_it(tmp_path: Path) -> None:
    starter = f"""
import os, signal
from pathlib import Path
from lozenge.process.detached import start_detached
child = start_detached(["sleep", "60"], log=Path({str(tmp_path / "log")!r}), folder=Path({str(tmp_path)!r}))
Path({str(tmp_path / "pid")!r}).write_text(str(child.pid))
os.killpg(0, signal.SIGKILL)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", starter], env=environment, start_new_session=True)
    process = psutil.Process(int((tmp_path / "pid").read_text()))
    try:
        assert process.is_running()
        assert os.getsid(process.pid) == process.pid
    finally:
        process.kill()
    until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)

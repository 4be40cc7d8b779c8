"""A job next to a Spark host is a fork of a warm process, and to everybody else the process that was started."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from lozenge.protocol.job_status import HOST_GONE
from tests.waiting import until

SERVER = """
import json, os, signal, sys, time
from pathlib import Path
import numpy
from lozenge.job import fork_server

def main():
    job = sys.argv[1]
    if job == "waits":
        signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
    print(json.dumps({
        "pid": os.getpid(), "argv": sys.argv[1:], "cwd": os.getcwd(), "greeting": os.environ.get("GREETING"),
        "server's": os.environ.get("OF_SERVER"), "zone": time.tzname[0], "prefix": sys.prefix,
        "drawn": numpy.random.random(), "files": len(os.listdir("/proc/self/fd")),
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
    }), flush=True)
    print("as well", file=sys.stderr, flush=True)
    if job == "raises":
        raise ValueError("no")
    while job == "waits":
        time.sleep(0.05)
    return int(job)

fork_server.main, fork_server.PRELOADED = main, ()
fork_server.serve(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else os.getppid())
"""
OR_MYSELF = "from lozenge.job.fork_client import run_forked; run_forked(); print('myself')"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder, of a length that the address of a socket could not have, with a fork server of base `b`."""
    with server_in(tmp_path_factory.mktemp("a" * 120)) as folder:
        yield folder


@contextmanager
def server_in(folder: Path) -> Iterator[Path]:
    environment = os.environ | {"LOZENGE_BASE": "b", "OF_SERVER": "1"}
    command = [sys.executable, "-c", SERVER, str(folder)]
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        until((folder / "fork.sock").exists)
        (folder / "pid").write_text(str(server.pid))
        yield folder
        server.kill()


def command_of(host: Path, base: str = "b", **variables: str) -> dict[str, Any]:
    """How a job is started next to the host."""
    chosen = {"LOZENGE_JOB_HOST": str(host), "LOZENGE_BASE": base, "GREETING": "hello", **variables}
    return {"env": os.environ | chosen, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def run(host: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", OR_MYSELF, *arguments]
    return subprocess.run(command, timeout=60, check=False, **command_of(host, **variables))


@contextmanager
def waiting(host: Path, **variables: str) -> "Iterator[tuple[subprocess.Popen[str], psutil.Process]]":
    """A job that waits: the process that was started, and the fork."""
    with subprocess.Popen([sys.executable, "-c", OR_MYSELF, "waits"], **command_of(host, **variables)) as started:
        assert started.stdout is not None
        yield started, psutil.Process(json.loads(started.stdout.readline())["pid"])
        started.kill()


def is_forked(host: Path) -> bool:
    """Whether a job that is started now is a fork."""
    return "pid" in run(host, "0").stdout


def passes_signals_on(pid: int) -> bool:
    """Whether the process has become the shell, and has its traps."""
    caught = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt"))
    is_shell = psutil.Process(pid).name() == "sh"
    return is_shell and bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def gone(process: psutil.Process) -> Callable[[], bool]:
    return lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_a_fork_has_what_the_started_process_has_and_nothing_of_the_server(host: Path) -> None:
    ran = run(host, "5", "more", TZ="Asia/Tokyo", OF_SERVER="")
    said = json.loads(ran.stdout)
    assert ran.returncode == 5
    assert ran.stderr == "as well\n"
    assert said["argv"] == ["5", "more"]
    assert said["cwd"] == str(Path.cwd())
    assert (said["greeting"], said["server's"], said["zone"]) == ("hello", "", "JST")
    assert said["prefix"] == sys.prefix
    until(lambda: not psutil.Process(int((host / "pid").read_text())).children())


def test_a_fork_is_as_nice_as_the_started_process_and_not_as_the_server(host: Path) -> None:
    command = ["nice", "-n", "7", sys.executable, "-c", OR_MYSELF, "0"]
    ran = subprocess.run(command, timeout=60, check=True, **command_of(host))
    assert json.loads(ran.stdout)["nice"] == os.getpriority(os.PRIO_PROCESS, 0) + 7
    assert os.getpriority(os.PRIO_PROCESS, int((host / "pid").read_text())) == os.getpriority(os.PRIO_PROCESS, 0)


def test_a_fork_keeps_no_file_of_the_server_open(host: Path) -> None:
    with waiting(host):
        alone = json.loads(run(host, "0").stdout)["files"]
        assert alone == 4  # the three streams, and the folder that it lists


def test_a_fork_is_named_by_its_detector_and_release(host: Path) -> None:
    with waiting(host, LOZENGE_JOB_RELEASE="r3") as (_, fork):
        shown = Path(f"/proc/{fork.pid}/cmdline").read_bytes().rstrip(b"\0 ")
        assert (shown, fork.name()) == (b"lozenge job waits r3", "waits r3")
    server = psutil.Process(int((host / "pid").read_text()))
    assert str(host) in server.cmdline()


def test_two_forks_draw_different_numbers(host: Path) -> None:
    assert json.loads(run(host, "0").stdout)["drawn"] != json.loads(run(host, "0").stdout)["drawn"]


def test_an_error_in_a_fork_ends_the_fork_alone(host: Path) -> None:
    assert run(host, "raises").returncode == 1
    assert is_forked(host)


def test_a_signal_to_the_started_process_reaches_the_fork(host: Path) -> None:
    with waiting(host) as (started, fork):
        until(lambda: passes_signals_on(started.pid))
        started.send_signal(signal.SIGTERM)
        assert started.wait(30) == 7
        until(gone(fork))


def test_a_fork_is_killed_with_the_started_process(host: Path) -> None:
    with waiting(host) as (started, fork):
        started.kill()
        until(gone(fork))
    assert is_forked(host)


def test_a_fork_that_is_killed_ends_the_started_process_as_a_shell_says_it(host: Path) -> None:
    with waiting(host) as (started, fork):
        fork.kill()
        assert started.wait(30) == 128 + signal.SIGKILL


def test_a_server_that_ends_takes_its_forks_along_and_says_so(tmp_path: Path) -> None:
    with server_in(tmp_path) as host, waiting(host) as (started, fork):
        os.kill(int((host / "pid").read_text()), signal.SIGKILL)
        until(gone(fork))
        assert started.wait(30) == HOST_GONE
        assert started.stderr is not None
        # the fork may have written its own words before or behind it
        [said] = (json.loads(line) for line in started.stderr.read().splitlines() if line.startswith("{"))
        assert "was forked from has ended" in said["event"]
        assert said["level"] == "error"


def test_a_server_ends_with_the_process_that_has_started_it(tmp_path: Path) -> None:
    starter = "import subprocess, sys; subprocess.Popen([sys.executable, *sys.argv[1:]]); input()"
    command = [sys.executable, "-c", starter, "-c", SERVER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=os.environ | {"LOZENGE_BASE": "b"}) as host:
        until((tmp_path / "fork.sock").exists)
        [server] = psutil.Process(host.pid).children()
        host.kill()
        until(gone(server))


def test_a_server_whose_host_ended_during_its_imports_ends_too(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as host:
        host.wait()
    assert subprocess.run([sys.executable, "-c", SERVER, str(tmp_path), str(host.pid)], timeout=60).returncode == 0


@pytest.mark.parametrize("base", ["another", ""])
def test_an_environment_with_other_packages_runs_its_job_itself(host: Path, base: str) -> None:
    ran = run(host, "5", LOZENGE_BASE=base)
    assert (ran.returncode, ran.stdout) == (0, "myself\n")


def test_a_host_without_a_fork_server_lets_the_process_run_its_job_itself(tmp_path: Path) -> None:
    assert run(tmp_path, "5").stdout == "myself\n"
    assert run(tmp_path / "none", "5").stdout == "myself\n"


def test_a_request_that_is_none_leaves_the_server_as_it_was(host: Path) -> None:
    here = Path.cwd()
    os.chdir(host)
    try:
        for data in (b"", b"\0", b"\0nonsense\n", b"\0[]\n"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stranger:
                stranger.connect("fork.sock")
                stranger.sendall(data)
                stranger.shutdown(socket.SHUT_WR)
                time.sleep(0.05)
    finally:
        os.chdir(here)
    assert is_forked(host)


def test_what_is_preloaded_leaves_no_thread_but_of_libraries_that_handle_a_fork() -> None:
    program = """
import os, threading
from lozenge.job import fork_server
fork_server.preload()
assert threading.active_count() == 1
for task in os.listdir("/proc/self/task"):
    print(open(f"/proc/self/task/{task}/comm").read().strip())
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    of_python_and_openblas = [name for name in run.stdout.splitlines() if name != "jemalloc_bg_thd"]
    assert len(of_python_and_openblas) <= 2
    assert all(name.startswith("python") for name in of_python_and_openblas)

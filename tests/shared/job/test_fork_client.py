"""A job asks the fork server of its host for a fork, and runs itself if it gets none."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lozenge.host.address import receive_line
from lozenge.protocol.job_status import HOST_GONE
from tests.waiting import until

CLIENT = "from lozenge.job.fork_client import run_forked; run_forked(); print('myself')"
LARGEST = 64 * 2**20


@contextmanager
def fork_server(folder: Path, answer: Callable[[socket.socket], None]) -> Iterator[list[dict[str, Any]]]:
    """A server that receives one request, and the three streams, and then answers by a script."""
    requests: list[dict[str, Any]] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(folder / "fork.sock"))
        listener.listen()
        listener.settimeout(60)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                _, streams, _, _ = socket.recv_fds(connection, 1, 8)
                requests.append(json.loads(receive_line(connection, LARGEST)) | {"streams": len(streams)})
                for stream in streams:
                    os.close(stream)
                answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield requests
        thread.join(60)


def client(folder: Path | None, *arguments: str, base: str = "b") -> "subprocess.Popen[str]":
    """A job that is started next to the host in `folder`."""
    chosen = {"LOZENGE_BASE": base} | ({} if folder is None else {"LOZENGE_JOB_HOST": str(folder)})
    environment = {name: value for name, value in os.environ.items() if name != "LOZENGE_JOB_HOST"} | chosen
    command = [sys.executable, "-c", CLIENT, *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def said(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def forks(pid: int, *then: bytes) -> Callable[[socket.socket], None]:
    """Answers with the id of a fork, and then with these bytes."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(b"".join((b"%d\n" % pid, *then)))  # a fork may end before anybody has read its id

    return answer


def test_it_sends_what_the_process_is_made_of_and_ends_as_the_fork_does(tmp_path: Path) -> None:
    with fork_server(tmp_path, forks(os.getpid(), b"5\n")) as requests:
        assert said(client(tmp_path, "spotter")) == (5, "", "")
    [request] = requests
    assert request["base"] == "b"
    assert request["argv"] == ["-c", "spotter"]
    assert request["folder"] == str(Path.cwd())
    assert request["nice"] == os.getpriority(os.PRIO_PROCESS, 0)
    assert request["variables"]["LOZENGE_JOB_HOST"] == str(tmp_path)
    assert request["prefixes"] == [sys.prefix, sys.exec_prefix, sys.executable]
    assert request["streams"] == 3


@pytest.mark.parametrize("answer", [b"0\n", b"", b"busy\n", b"7"], ids=repr)
def test_without_a_fork_it_runs_the_job_itself(answer: bytes, tmp_path: Path) -> None:
    with fork_server(tmp_path, lambda connection: connection.sendall(answer)):
        assert said(client(tmp_path)) == (0, "myself\n", "")


def test_without_a_host_or_without_known_packages_nobody_is_asked(tmp_path: Path) -> None:
    assert said(client(None)) == (0, "myself\n", "")
    assert said(client(tmp_path / "none")) == (0, "myself\n", "")
    (tmp_path / "fork.sock").write_text("no socket")
    assert said(client(tmp_path)) == (0, "myself\n", "")
    assert said(client(tmp_path, base="")) == (0, "myself\n", "")


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_passed_on_to_the_fork_and_its_exit_code_is_awaited(asked: signal.Signals, tmp_path: Path) -> None:
    trap = "trap 'echo got; exit 9' TERM INT; echo up; while :; do sleep 0.05; done"
    with (
        signals_as_in_a_terminal(),
        subprocess.Popen(["sh", "-c", trap], stdout=subprocess.PIPE, text=True) as fork,
        ended(fork),
    ):
        assert fork.stdout is not None
        assert fork.stdout.readline() == "up\n"

        def answer(connection: socket.socket) -> None:
            forks(fork.pid)(connection)
            connection.sendall(b"%d\n" % fork.wait(60))

        with fork_server(tmp_path, answer):
            started = client(tmp_path)
            until(lambda: b"trap" in Path(f"/proc/{started.pid}/cmdline").read_bytes())
            until(lambda: _catches(started.pid, asked))
            started.send_signal(asked)
            assert said(started) == (9, "", "")
        assert fork.stdout.read() == "got\n"


@contextmanager
def signals_as_in_a_terminal() -> Iterator[None]:
    """What is started in the background ignores SIGINT, its children too, and no shell can trap what it ignores."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[None]:
    """Kills `process` if the block fails, whose end would else be awaited for ever."""
    try:
        yield
    except BaseException:
        process.kill()
        raise


def _catches(pid: int, number: signal.Signals) -> bool:
    [caught] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt")]
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


def test_the_end_of_the_fork_server_is_reported_as_an_error_that_names_the_host(tmp_path: Path) -> None:
    with fork_server(tmp_path, forks(os.getpid())):
        code, out, err = said(client(tmp_path))
    line = json.loads(err)
    assert (code, out, line["level"]) == (HOST_GONE, "", "error")
    assert str(tmp_path) in line["event"]
    assert "another Spark host" in line["hint"]

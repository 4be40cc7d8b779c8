"""Processes on one JVM: none notices what another one does, and nothing of one remains when it is gone."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from lozenge.errors import SparkGone
from lozenge.host.address import LOG, published
from lozenge.host.client import SharedJvm
from lozenge.host.log_attribution import app_of
from lozenge.host.tool_host import TOOL_SIZE, tool_session, warm_host
from lozenge.spark.internals import errors
from lozenge.spark.session_provider import SessionRequest
from tests.integration.harness import wait_for


class Client:
    """A process of `client_program`."""

    def __init__(self, host: Path, name: str, work: str, argument: str, environment: dict[str, str]) -> None:
        command = [sys.executable, "-m", "tests.integration.host.client_program", str(host), name, work, argument]
        environment = os.environ | environment
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)

    def says(self) -> Any:
        """Its next line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"it has ended with {self.process.wait()}"
        return json.loads(line)

    def end(self, by: signal.Signals = signal.SIGKILL) -> None:
        self.process.send_signal(by)
        self.process.wait()


@pytest.fixture(scope="module")
def host() -> Path:
    """The warm host of the run."""
    return warm_host()


@contextmanager
def client(host: Path, name: str, work: str, argument: str = "", **environment: str) -> Iterator[Client]:
    running = Client(host, name, work, argument, environment)
    try:
        yield running
    finally:
        with running.process:  # closes its output too
            running.process.kill()


def jvm_of(host: Path) -> psutil.Process:
    address = published(host)
    assert address is not None
    return next(each for each in psutil.Process(address.pid).children() if "java" in each.name())


def gone(host: Path, name: str) -> bool:
    """Whether the host has noted the end of a client of this name."""
    return any(f'"{name}-' in line and "is gone" in line for line in (host / LOG).read_text().splitlines())


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_the_end_of_one_client_is_not_noticed_by_another(host: Path, how: signal.Signals) -> None:
    with client(host, f"stays-{how}", "stream") as stays, client(host, f"goes-{how}", "stream") as goes:
        stays.says()
        goes.says()
        goes.end(how)
        wait_for(lambda: gone(host, f"goes-{how}"), "the end of its queries")
        before = stays.says()
        wait_for(lambda: stays.says() > before + 3, "further batches of the other")


def test_a_query_without_calls_into_python_ends_with_its_client(host: Path, tmp_path: Path) -> None:
    with client(host, "writes", "files", str(tmp_path)) as writes:
        wait_for(lambda: writes.says() > 2, "files")
        writes.end()
    wait_for(lambda: gone(host, "writes"), "the end of its queries")
    offsets = tmp_path / "checkpoint" / "offsets"
    written = sorted(offsets.iterdir())
    with client(host, "later", "stream") as later:
        wait_for(lambda: later.says() > 5, "batches of another, which take the time of many of the first")
    assert sorted(offsets.iterdir()) == written


def test_a_job_ends_with_its_client(host: Path) -> None:
    with client(host, "sleeps", "sleep") as sleeps:
        assert sleeps.says() == "begins"
        sleeps.end()
    wait_for(lambda: gone(host, "sleeps"), "its end")
    with client(host, "next", "stream") as following:
        wait_for(lambda: following.says() > 2, "that there are slots for others")


def test_sessions_share_no_settings_and_no_views(host: Path) -> None:
    with client(host, "one", "settings", "7", TZ="Asia/Tokyo") as one, client(host, "two", "settings", "9") as two:
        assert one.says() == ["2", False, 7, "UTC"]
        assert two.says() == ["2", False, 9, "UTC"]


def test_a_client_that_stops_spark_stops_it_for_nobody(host: Path) -> None:
    with client(host, "other", "stream") as other:
        other.says()
        with client(host, "stops", "stop") as stops:
            assert stops.says() == "stopped"
            assert stops.process.wait() == 0
        before = other.says()
        wait_for(lambda: other.says() > before + 3, "further batches of the other")


def test_a_result_above_the_limit_of_the_host_ends_the_query_of_its_client_alone(host: Path) -> None:
    with client(host, "small", "stream") as small:
        small.says()
        with client(host, "large", "result", "200k") as large:
            limit, outcome = large.says()
        assert limit == f"{TOOL_SIZE.result_mb}m"
        assert errors.is_result_too_large(Exception(outcome)), outcome
        before = small.says()
        wait_for(lambda: small.says() > before + 3, "further batches of the other")


def test_functions_run_in_workers_of_their_client_which_end_with_it(host: Path, tmp_path: Path) -> None:
    path = str(tmp_path)
    with (
        client(host, "calls", "function", path, PYTHONPATH=path) as calls,
        client(host, "else", "function", path) as other,
    ):
        (worker, name, found), (_, another, without) = calls.says(), other.says()
        assert name.startswith("calls-")
        assert another.startswith("else-")
        assert (found, without) == (True, False)
        calls.end()
        wait_for(lambda: not psutil.pid_exists(worker), "the end of the worker")
        assert other.says()


def test_lines_of_the_jvm_name_their_client_and_never_another_one(host: Path) -> None:
    names = ("logs-one", "logs-two")
    with client(host, names[0], "logs", names[0]) as one, client(host, names[1], "logs", names[1]) as two:
        assert one.says() == two.says() == "failed"
    lines = [json.loads(line) for line in (host / LOG).read_text().splitlines() if line.startswith("{")]
    for name in names:
        found = [(app_of(line), line["event"]) for line in lines if name in json.dumps(line) and "thread" in line]
        assert {app for app, _ in found} == {name}, found
        for word in ("by call", "without a broker", "in query", "CSV header does not conform"):
            assert any(word in event for _, event in found), found
        assert not [event for _, event in found if "in task" in event], "a failed task ends its query, and is no line"


def test_the_cost_of_a_client_is_its_process_its_workers_and_a_share_of_the_jvm(host: Path) -> None:
    with client(host, "costs", "cost") as costs:
        (before, _, _), (after, memory, own) = costs.says(), costs.says()
        assert after >= before + 0.9
        assert memory > own + jvm_of(host).memory_info().rss // 50


def test_two_that_need_a_host_at_once_start_one_which_keeps_nothing_of_its_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOZENGE_SPARK_HOST", str(tmp_path))
    command = [sys.executable, "-c", "from lozenge.host.tool_host import warm_host; print(warm_host())"]
    starting = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    (folder,) = {Path(each.communicate()[0].strip()) for each in starting}
    running = published(folder)
    assert running is not None
    # the threads of the warm-up query end minutes later
    wait_for(lambda: "warm-up query ended" in (folder / LOG).read_text(), "the end of its warm-up query")
    assert "NetworkClient" not in (folder / LOG).read_text(), "its Kafka clients have no broker on purpose"
    _expect_nothing_to_stay(folder)
    with client(folder, "survives-not", "stream") as lost:
        lost.says()
        jvm_of(folder).kill()
        psutil.Process(running.pid).wait(30)
        assert lost.process.wait(30) != 0
    assert published(folder) is None
    with pytest.raises(SparkGone, match="no host runs there"):
        SharedJvm(folder).start(SessionRequest("late", 2, 512))


def _expect_nothing_to_stay(folder: Path) -> None:
    """Threads and connections of the JVM are as many after some more clients."""
    jvm = jvm_of(folder)

    def counted() -> tuple[int, int]:
        return jvm.num_threads(), len(jvm.net_connections())

    def come_and_go(names: list[str]) -> None:
        for name in names:
            with client(folder, name, "stream") as passes:
                passes.says()
        wait_for(lambda: all(gone(folder, name) for name in names), "their ends")

    come_and_go(["first", "second"])
    threads, connections = counted()
    come_and_go(["third", "fourth", "fifth"])
    wait_for(lambda: counted()[0] < threads + 3, "the ends of their threads")
    wait_for(lambda: counted()[1] < connections + 3, "the ends of their connections")


def test_a_tool_in_a_process_with_spark_has_a_session_there(spark: Any) -> None:
    session = tool_session("alone", {"spark.sql.shuffle.partitions": "5"})
    assert session.sparkContext.applicationId == spark.sparkContext.applicationId
    assert session.conf.get("spark.sql.shuffle.partitions") == "5"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"

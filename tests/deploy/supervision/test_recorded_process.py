"""A recorded process is found again by its record, and is never mistaken for a later one with its pid."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from lozenge_deploy.supervision.recorded_process import RECORD, ProcessRecord, RecordedProcess, recorded
from tests.waiting import until


class Named(ProcessRecord, frozen=True, kw_only=True):
    """A record of a process that has a name."""

    name: str


def start(folder: Path, script: str = "sleep 60") -> RecordedProcess[Named]:
    folder.mkdir()
    child = subprocess.Popen(["sh", "-c", script], process_group=0)
    return RecordedProcess.of_child(
        folder, child, lambda pid, created: Named(pid=pid, created=created, started_at=1.0, name=folder.name)
    )


@pytest.fixture
def process(tmp_path: Path) -> Iterator[RecordedProcess[Named]]:
    started = start(tmp_path / "one", "sleep 60 & sleep 60")
    yield started
    started.kill_group()
    until(lambda: not started.runs())


def test_another_process_finds_it_by_its_record(process: RecordedProcess[Named], tmp_path: Path) -> None:
    again = RecordedProcess(tmp_path / "one", Named)
    assert again.record == process.record
    assert (again.record.name, again.record.started_at) == ("one", 1.0)
    assert again.runs()
    again.kill_group()
    until(lambda: not again.runs())
    assert not process.runs()


def test_its_starter_reaps_it_when_it_has_seen_its_end(tmp_path: Path) -> None:
    started = start(tmp_path / "short", "exit 3")
    until(lambda: not started.runs())
    assert not psutil.pid_exists(started.record.pid)


def test_a_later_process_with_its_pid_is_another(process: RecordedProcess[Named], tmp_path: Path) -> None:
    recycled = msgspec.structs.replace(process.record, created=process.record.created - 100)
    (tmp_path / "one" / RECORD).write_bytes(msgspec.json.encode(recycled))
    other = RecordedProcess(tmp_path / "one", Named)
    assert not other.runs()
    other.terminate()
    assert process.runs()


def test_it_can_be_asked_to_stop(process: RecordedProcess[Named]) -> None:
    process.terminate()
    until(lambda: not process.runs())
    process.terminate()  # which has no effect any more


def test_a_kill_reaches_its_whole_group_and_waits_for_its_end(process: RecordedProcess[Named]) -> None:
    until(lambda: psutil.Process(process.record.pid).children())
    child = psutil.Process(process.record.pid).children()[0]
    process.kill_group(reap_seconds=60)
    assert not psutil.pid_exists(process.record.pid)
    until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


def test_its_nice_value_can_be_reset_only_where_the_system_permits_it(process: RecordedProcess[Named]) -> None:
    os.setpriority(os.PRIO_PGRP, process.record.pid, 5)
    process.raise_priority()
    assert os.getpriority(os.PRIO_PROCESS, process.record.pid) in (0, 5)
    os.kill(process.record.pid, signal.SIGKILL)
    until(lambda: not process.runs())
    process.raise_priority()


def test_folders_without_a_record_are_skipped(process: RecordedProcess[Named], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / RECORD).write_text("{")
    found = recorded(tmp_path, lambda folder: RecordedProcess(folder, Named))
    assert [each.record for each in found] == [process.record]
    assert recorded(tmp_path / "nowhere", lambda folder: RecordedProcess(folder, Named)) == []

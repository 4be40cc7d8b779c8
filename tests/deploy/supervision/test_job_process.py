"""A job as a process: found again by its folder, without orphans."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from lozenge.protocol.job_spec import JobSpec
from lozenge.protocol.job_status import JobPhase, JobStatus
from lozenge_deploy.agent.job_logs import removable
from lozenge_deploy.supervision import job_process as instance_module
from lozenge_deploy.supervision.job_process import EXIT, LOG, TEMPORARY, JobProcess, job_processes
from lozenge_deploy.supervision.recorded_process import RECORD
from tests.deploy.agent.test_health import write_report
from tests.waiting import until


@pytest.fixture
def started() -> Iterator[list[JobProcess]]:
    """All that a test has started, which ends with it."""
    started: list[JobProcess] = []
    yield started
    for instance in started:
        instance.kill()
        until(lambda: not instance.alive())  # noqa: B023


@pytest.fixture
def start(tmp_path: Path, started: list[JobProcess]) -> Callable[..., JobProcess]:
    """Starts a shell script as a job."""

    def start(script: str, generation: int = 1) -> JobProcess:
        started.append(
            JobProcess.start(
                tmp_path / f"g{generation}",
                ["sh", "-c", script],
                os.environ,
                JobSpec(generation=generation),
                detector="spotter",
                release="r1",
                process=["r1", None, None, 0],
                state="keep",
                memory_mb=512,
            )
        )
        return started[-1]

    return start


def test_a_later_agent_knows_how_a_job_ended(start: Callable[..., JobProcess]) -> None:
    first = start("exit 7")
    until(lambda: not first.alive())
    later = JobProcess(first.folder)
    assert (later.alive(), later.exit_code()) == (False, 7)


def test_a_new_start_in_the_same_folder_forgets_how_the_last_one_ended(start: Callable[..., JobProcess]) -> None:
    first = start("echo one; exit 7")
    until(lambda: not first.alive())
    write_report(first.folder, JobStatus(1, 1.0, phase=JobPhase.LIVE))
    second = start("echo two; sleep 60")
    until(lambda: (second.folder / LOG).read_text() == "one\ntwo\n")
    assert (second.alive(), second.exit_code(), second.status()) == (True, None, None)
    assert not first.alive()


def test_temporary_files_of_a_killed_job_are_gone_with_its_next_start(start: Callable[..., JobProcess]) -> None:
    first = start('mkdir "$TMPDIR/blockmgr"; echo up; sleep 60')
    until(lambda: (first.folder / LOG).exists() and (first.folder / LOG).read_text() == "up\n")
    assert (first.folder / "tmp" / "blockmgr").is_dir()
    first.kill()
    until(lambda: not first.alive())
    second = start('ls "$TMPDIR"; echo again')
    until(lambda: not second.alive())
    assert (second.folder / LOG).read_text() == "up\nagain\n"


def test_a_later_process_with_the_number_of_its_leader_is_not_the_job(start: Callable[..., JobProcess]) -> None:
    first = start("sleep 60")
    created = psutil.Process().create_time() - 100
    recycled = msgspec.structs.replace(first.record, pid=os.getpid(), created=created)
    (first.folder / RECORD).write_bytes(msgspec.json.encode(recycled))
    assert not JobProcess(first.folder).alive()


def test_the_last_error_is_the_newest_one(start: Callable[..., JobProcess]) -> None:
    instance = start("""echo '{"level": "error", "event": "no such topic"}'; echo Traceback; echo '[1]'""")
    until(lambda: not instance.alive())
    assert instance.last_error() == "no such topic"


@pytest.mark.parametrize("own", ["", "no such topic"])
def test_what_the_jvm_says_of_an_end_hides_no_error_of_the_jobs_own(start: Callable[..., JobProcess], own: str) -> None:
    said = f"""echo '{{"level": "critical", "event": "{own}"}}'; """ if own else ""
    instance = start(
        said + """echo '{"level": "error", "logger": "org.apache.spark", "event": "Aborted"}'; echo Ended"""
    )
    until(lambda: not instance.alive())
    assert instance.last_error() == (own or "Aborted")


def test_the_last_error_is_the_last_line_where_none_was_reported(start: Callable[..., JobProcess]) -> None:
    instance = start("""echo up; echo '{"level": "info", "event": "query starts"}'""")
    until(lambda: not instance.alive())
    assert instance.last_error() == "query starts"


def test_orphans_of_a_killed_leader_count_and_are_killed(
    start: Callable[..., JobProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instance_module, "GROUP_GRACE_SECONDS", 0.2)
    instance = start("echo up; sleep 60")
    until(lambda: (instance.folder / LOG).exists() and (instance.folder / LOG).read_text())
    [job] = psutil.Process(instance.record.pid).children()
    os.kill(instance.record.pid, signal.SIGKILL)
    assert instance.alive()
    assert JobProcess(instance.folder).alive()
    until(lambda: not instance.alive())
    assert not job.is_running() or job.status() == psutil.STATUS_ZOMBIE
    assert instance.exit_code() is None


def test_a_kill_reaches_what_is_left_of_it_without_its_leader(start: Callable[..., JobProcess]) -> None:
    instance = start("sleep 60 & sleep 60")
    until(lambda: len(psutil.Process(instance.record.pid).children(recursive=True)) == 3)
    os.kill(instance.record.pid, signal.SIGKILL)
    again = JobProcess(instance.folder)
    again.kill()
    until(lambda: not again.alive())


def test_a_stop_before_its_first_status_kills_it(start: Callable[..., JobProcess]) -> None:
    instance = start("trap '' TERM; sleep 60")
    instance.terminate()
    until(lambda: not instance.alive())
    assert instance.stopping_seconds() > 0


def test_nothing_runs_if_its_starter_dies_before_it_has_written_down_what_it_started(tmp_path: Path) -> None:
    starter = f"""
import os, sys
from pathlib import Path
from lozenge.protocol.job_spec import JobSpec
from lozenge_deploy.supervision import job_process, recorded_process
recorded_process.replace = lambda file, text: os._exit(9)
job_process.JobProcess.start(Path({str(tmp_path / "g1")!r}), ["sh", "-c", "touch ran; sleep 60"], os.environ, JobSpec(),
    detector="spotter", release="r1", process=[], state="keep", memory_mb=512)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", starter], env=environment).returncode == 9
    until(lambda: not [p for p in psutil.process_iter() if works_in(p, tmp_path / "g1")])
    assert not (tmp_path / "g1" / "ran").exists()
    assert job_processes(tmp_path) == []
    assert list(removable(tmp_path)) == [tmp_path / "g1"]


def test_a_folder_is_deleted_once_no_job_will_resume_in_it(start: Callable[..., JobProcess]) -> None:
    for generation in range(1, 4):  # live, each in its time
        ended = start("exit 0", generation)
        until(lambda: not ended.alive())  # noqa: B023
        write_report(ended.folder, JobStatus(1, 1.0, phase=JobPhase.LIVE))
    running = start("sleep 60", 4)
    for generation in (5, 6):  # never live
        ended = start("exit 1", generation)
        until(lambda: not ended.alive())  # noqa: B023
    assert [i.record.generation for i in job_processes(running.folder.parent)] == [6, 5, 4, 3, 2, 1]
    assert sorted(folder.name for folder in removable(running.folder.parent)) == ["g1", "g2", "g5"]


def test_an_unreadable_job_spec_counts_as_none(start: Callable[..., JobProcess]) -> None:
    instance = start("sleep 60")
    assert instance.spec() == JobSpec(generation=1)
    (instance.folder / "job_spec.json").write_text("{")
    assert instance.spec() is None


def test_the_files_of_a_job_have_the_documented_names(start: Callable[..., JobProcess]) -> None:
    instance = start("exit 0")
    until(lambda: not instance.alive())
    assert {p.name for p in instance.folder.iterdir()} == {RECORD, LOG, EXIT, TEMPORARY, "job_spec.json"}


def works_in(process: psutil.Process, folder: Path) -> bool:
    try:
        return process.cwd() == str(folder)
    except psutil.Error:
        return False


def test_a_live_job_has_an_ordinary_priority_in_whatever_group_it_is(start: Callable[..., JobProcess]) -> None:
    instance = start("sleep 60")
    until(lambda: psutil.Process(instance.record.pid).children())
    [below] = psutil.Process(instance.record.pid).children()
    with subprocess.Popen(["nice", "-n", "5", "sleep", "60"], process_group=0) as fork:
        until(lambda: os.getpriority(os.PRIO_PROCESS, fork.pid) >= 5)
        write_report(instance.folder, JobStatus(fork.pid, psutil.Process(fork.pid).create_time(), phase=JobPhase.LIVE))
        assert below.nice() > 0, "a start is nicer than what is live"
        permitted = (0, 0) if os.geteuid() == 0 else (below.nice(), 5)
        instance.raise_priority()
        assert (below.nice(), psutil.Process(fork.pid).nice()) == permitted
        fork.kill()

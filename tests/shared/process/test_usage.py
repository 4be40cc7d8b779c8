"""The cost of a process is that of its whole tree, also of what has ended."""

import os
import subprocess
import sys
from pathlib import Path

import psutil

from lozenge.process.usage import Meter, counted

BUSY = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"


def test_a_childs_seconds_and_memory_count_and_its_seconds_stay_when_it_has_ended() -> None:
    meter = Meter()
    before = meter.read()
    with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        during = meter.read()
        child.communicate(b"\n")
    after = meter.read()
    assert during.cpu_seconds >= before.cpu_seconds + 0.25
    assert during.memory_bytes > before.memory_bytes
    assert after.cpu_seconds >= during.cpu_seconds
    assert after.memory_bytes < during.memory_bytes


def test_what_this_process_has_used_is_in_it() -> None:
    used = sum(os.times()[:2])
    assert Meter().read().cpu_seconds >= used > 0


FORKS = """
import os, sys
if child := os.fork():
    print(child, flush=True)
    os.waitpid(child, 0)
else:
    sys.stdin.readline()
    os.execlp("sleep", "sleep", "60")
"""


def test_what_a_jvm_has_forked_counts_once_it_is_another_program(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.symlink_to(sys.executable)
    with subprocess.Popen([java, "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as jvm:
        assert jvm.stdin is not None
        assert jvm.stdout is not None
        child, tree = psutil.Process(int(jvm.stdout.readline())), psutil.Process(jvm.pid)
        assert list(counted([tree, *tree.children()])) == [tree]
        jvm.stdin.write(b"\n")
        jvm.stdin.flush()
        while child.name() != "sleep":
            assert jvm.poll() is None
        assert list(counted([tree, *tree.children()])) == [tree, child]
        child.kill()


def test_another_process_can_be_the_root_and_may_end() -> None:
    with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        meter = Meter(psutil.Process(child.pid))
        during = meter.read()
        child.communicate(b"\n")
    assert during.cpu_seconds >= 0.25
    assert meter.read().cpu_seconds == during.cpu_seconds


def test_further_processes_are_found_at_each_reading_and_stay_counted() -> None:
    found = list[psutil.Process]()
    with subprocess.Popen(["sleep", "60"]) as root:
        meter = Meter(psutil.Process(root.pid), also=lambda: found)
        before = meter.read()
        with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            other.stdout.readline()
            found.append(psutil.Process(other.pid))
            during = meter.read()
            other.communicate(b"\n")
        found.clear()
        after = meter.read()
        root.kill()
    assert during.cpu_seconds >= before.cpu_seconds + 0.25
    assert during.memory_bytes > after.memory_bytes > 0
    assert after.cpu_seconds == during.cpu_seconds

"""The cost of a process is that of its whole tree, also of what has ended."""

import os
import subprocess
import sys

from lozenge.cost import Meter

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

"""Memory that is no longer used goes back to the system."""

import subprocess
import sys

BURST = """
from lozenge.process.memory import trim_heap
import psutil

blocks = [bytearray(100_000) for _ in range(500)]
held = bytearray(100_000)  # the top of the heap: without a trim nothing below it goes back
taken = psutil.Process().memory_info().rss
del blocks
trim_heap()
print(taken - psutil.Process().memory_info().rss)
"""


def test_a_burst_leaves_nothing_behind() -> None:
    run = subprocess.run([sys.executable, "-c", BURST], capture_output=True, text=True, check=True)
    assert int(run.stdout) > 40_000_000

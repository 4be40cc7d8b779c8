"""Whether the machine is ours: what other work takes of its processors decides if a figure counts.

`Watch` compares what all processors did with what this process and all that it started did, so the load of the
benchmark itself does not count as somebody else's.
"""

import os
import platform
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from lozenge.process.usage import Meter
from tests.bench.harness.platform import TOPICS

OTHERS_CORES, STEAL_CORES = 0.15, 0.05
"""More than this of other work, or taken by the hypervisor, and a figure is not scored."""
LOOK_SECONDS, PATIENCE_SECONDS = 2.0, 60.0


@dataclass(frozen=True, slots=True)
class Load:
    """Cores that others kept busy and that the hypervisor took, on average over a time."""

    others: float
    steal: float

    @property
    def disturbs(self) -> str:
        """Why a figure taken under this load does not count; "" if it does."""
        if self.others > OTHERS_CORES:
            return f"other work took {self.others:.2f} cores (at most {OTHERS_CORES})"
        if self.steal > STEAL_CORES:
            return f"the hypervisor took {self.steal:.2f} cores (at most {STEAL_CORES})"
        return ""


class Watch:
    """The load since it was made, or since the last `look`."""

    def __init__(self) -> None:
        self._ours = Meter()
        self._before = self._read()

    def look(self) -> Load:
        """The load until now."""
        before, now = self._before, self._read()
        self._before = now
        seconds = max(now[0] - before[0], 1e-9)
        busy, steal, ours = ((b - a) / seconds for a, b in zip(before[1:], now[1:], strict=True))
        return Load(max(0.0, busy - ours), max(0.0, steal))

    def note(self) -> None:
        """Looks at what our processes have taken so far, before some of them end: it still counts as ours then."""
        self._ours.read()

    def _read(self) -> tuple[float, float, float, float]:
        """The time; processor seconds of all, of the hypervisor, and ours."""
        times = psutil.cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        steal = getattr(times, "steal", 0.0)
        guest = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)  # is in user and nice too
        return time.monotonic(), sum(times) - idle - steal - guest, steal, self._ours.read().cpu_seconds


def await_quiet(watch: Watch, patience: float) -> str:
    """Waits until nothing else runs; why not, if that takes longer than `patience` seconds."""
    deadline = time.monotonic() + patience
    while True:
        watch.look()
        time.sleep(LOOK_SECONDS)
        disturbed = watch.look().disturbs
        if not disturbed or time.monotonic() > deadline:
            return disturbed


def description() -> dict[str, object]:
    """What ran it, and which of our sources it ran, for the report."""
    return {
        "commit": commit_of(Path(__file__).parent),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load_average": [round(each, 2) for each in psutil.getloadavg()],
        "partitions": TOPICS.partitions,
    }


def commit_of(folder: Path) -> str:
    """The commit of a checkout, marked if its files differ from it; "" for what is none, and where there is no git."""
    command = ["git", "describe", "--always", "--dirty"]
    with suppress(FileNotFoundError):
        return subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout.strip()
    return ""

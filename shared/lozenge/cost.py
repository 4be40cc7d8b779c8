"""What this process costs, with everything that it started: its JVM and Spark's Python workers."""

from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor seconds since the process began, of children that ended too, and resident memory in bytes now.

    Memory that processes share, as of a class-data archive, counts once in each.
    """

    cpu_seconds: float
    memory_bytes: int


class Meter:
    """Measures the process tree below this process; used by one thread."""

    def __init__(self) -> None:
        self._me = psutil.Process()
        self._seconds: dict[tuple[int, float], float] = {}

    def read(self) -> Cost:
        """The cost until now. A child's seconds still count when it has ended between two readings."""
        memory = 0
        for process in (self._me, *self._me.children(recursive=True)):
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    memory += process.memory_info().rss
                    self._seconds[process.pid, process.create_time()] = times.user + times.system
            except psutil.Error:  # it has just ended
                continue
        return Cost(sum(self._seconds.values()), memory)

"""What a process costs, with everything that it started: a job's JVM and Spark's Python workers."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Protocol

import psutil


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor seconds since the process began, of children that ended too, and resident memory in bytes now.

    Memory that processes share, as of a class-data archive, counts once in each. `parts` divides the processor seconds
    by what used them, and `shuffle_bytes` were written and read between stages, where a JVM is shared.
    """

    cpu_seconds: float
    memory_bytes: int
    parts: Mapping[str, float] = field(default_factory=dict)
    shuffle_bytes: int = 0


class CostMeter(Protocol):
    """Measures what a process costs; used by one thread at a time."""

    def read(self) -> Cost:
        """The cost until now."""
        ...


def counted(processes: Iterable[psutil.Process]) -> Iterator[psutil.Process]:
    """`processes`, parents first, without those that a JVM has forked and that are still its image.

    Until such a child becomes another program, a moment later, it shows all of its JVM's memory, which it only shares.
    """
    commands = dict[int, list[str]]()
    for process in processes:
        try:
            command = commands[process.pid] = process.cmdline()
            forked = command and command == commands.get(process.ppid()) and PurePath(command[0]).name == "java"
        except psutil.Error:  # it has just ended
            continue
        if not forked:
            yield process


class Meter:
    """Measures the process trees of `roots`, else that of this process; used by one thread.

    `also` finds further roots at each reading.
    """

    def __init__(self, *roots: psutil.Process, also: Callable[[], Iterable[psutil.Process]] = tuple) -> None:
        self._roots, self._also = roots or (psutil.Process(),), also
        self._seconds: dict[tuple[int, float], float] = {}

    def read(self) -> Cost:
        """The cost until now. A child's seconds still count when it has ended between two readings."""
        memory = 0
        for process in counted(self._tree()):
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    memory += process.memory_info().rss
                    self._seconds[process.pid, process.create_time()] = times.user + times.system
            except psutil.Error:  # it has just ended
                continue
        return Cost(sum(self._seconds.values()), memory)

    def _tree(self) -> Iterable[psutil.Process]:
        found: dict[int, psutil.Process] = {}
        for root in (*self._roots, *self._also()):
            with suppress(psutil.NoSuchProcess):
                found |= {process.pid: process for process in (root, *root.children(recursive=True))}
        return found.values()

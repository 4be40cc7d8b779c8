"""The Spark hosts below a folder: it starts, drains and ends them as `placement` decides."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from lozenge.detector.resources import DEFAULT_MEMORY_MB
from lozenge.errors import SparkGone
from lozenge.host.process import HostSize
from lozenge.process.logging import logger
from lozenge_deploy.hosts.host_process import HostProcess, host_logs, host_processes
from lozenge_deploy.hosts.placement import (
    LIMITS,
    HostView,
    Limits,
    Need,
    below_start_limit,
    place,
    surplus,
    to_await,
    wants_spare,
)
from lozenge_deploy.hosts.running_host import RunningHost
from lozenge_deploy.hosts.start_failures import StartFailures
from lozenge_deploy.hosts.suspicions import Suspicions
from lozenge_deploy.supervision.job_process import StartRecord

TICK_SECONDS = 1.0


def default_size() -> HostSize:
    """Of this machine: more task slots than cores, since a task that waits, or hangs, keeps a slot and no core.

    The largest result is that of a detector with default resources in a JVM of its own.
    """
    return HostSize(
        cores=max(8, 2 * (os.cpu_count() or 1)), memory_mb=2048, result_mb=DEFAULT_MEMORY_MB // 4, new_mb=128
    )


class HostPool:
    """Used by one thread, and never blocks it. Hosts outlive the pool; the next one for the folder adopts them.

    `environment` is what a host is started with, `size` its JVM (`default_size` if None). `clock` gives Unix seconds.
    Once `first` is set, by any thread, a host of this Python and fingerprint waits for a detector while none runs.
    """

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        *,
        size: HostSize | None = None,
        limits: Limits = LIMITS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder, self._environment, self._size = folder, environment, size or default_size()
        self._limits, self._clock = limits, clock
        self._hosts: dict[str, RunningHost] = {}
        self._suspicions = Suspicions(limits.suspect_seconds)
        self.first: tuple[Path, str] | None = None
        self._failures = StartFailures()
        self._ticked_at = self._placed_at = 0.0
        self._number = 0
        self.adopt()

    def adopt(self) -> None:
        """Takes the hosts that another pool has started below the folder, if they still run."""
        for found in host_processes(self._folder):
            if found.name in self._hosts:
                continue
            if found.alive():
                self._hosts[found.name] = RunningHost(found, used_at=self._clock())
            else:
                logger().info(f"Spark host {found.name} has ended while no agent ran")
                found.discard()
        self._number = max([self._number, *(int(log.parent.name[1:]) for log in host_logs(self._folder))])

    def has_room(self, need: Need, python: Path) -> bool:
        """Whether `take` answers at once. If not, a host is started, by `python` and what is installed there."""
        hosts = self._views()  # looked at once: one that becomes ready meanwhile is awaited, and not started again
        if self._place(need, hosts) is not None:
            return True
        awaited = to_await(need, hosts, self._suspicions.allowed(self._clock()), self._limits)
        if awaited is None and below_start_limit(hosts, self._limits):
            if not self._failures.may_start(self._clock()):
                return bool(self._failures.problem)
            awaited = self._start(need.fingerprint, python)
        if awaited is not None:
            self._hosts[awaited].awaited[need.detector] = need.weight
        return False

    def take(self, need: Need) -> Path:
        """The folder of the host that the detector is to start on; raises SparkGone if none starts."""
        name = self._place(need, self._views())
        if name is None:
            reason = self._failures.problem or "none is ready"
            raise SparkGone(f"looking for a Spark host for {need.detector}: {reason}", hint="it is tried again")
        host = self._hosts[name]
        host.placements += 1
        host.detectors.setdefault(need.detector, need.weight)
        host.used_at = self._placed_at = self._clock()
        return host.process.folder

    def has_ended(self, name: str) -> bool:
        """Whether the host of this name has ended, or was never known."""
        host = self._hosts.get(name)
        return host is None or not host.process.alive()

    def neighbours_at_end(self, name: str) -> int:
        """How many other detectors a host had when it ended; 0 if that is not known."""
        if (known := self._suspicions.neighbours_at_end(name)) is not None:
            return known
        host = self._hosts.get(name)  # its end is noticed in the next tick
        return max(0, len(host.detectors) - 1) if host is not None else 0

    def draining(self) -> dict[str, str]:
        """The hosts that detectors are to move from, each with the reason."""
        return {name: host.draining for name, host in self._hosts.items() if host.draining}

    def tick(self, jobs: Sequence[StartRecord]) -> None:
        """Notices hosts that have ended, and starts and ends what is needed and not; `jobs` are all that run."""
        if (now := self._clock()) - self._ticked_at < TICK_SECONDS:
            return
        self._ticked_at = now
        for name, host in list(self._hosts.items()):
            if not host.process.alive():
                self._reap(name, host)
        for name, host in self._hosts.items():
            host.detectors = {job.detector: job.weight for job in jobs if job.spark_host == name}
            host.used_at = now if host.detectors else host.used_at
            if problem := host.tend(now, self._limits):
                self._start_failed(problem)
        if (newest := self._hosts.get(f"h{self._number}")) is not None and newest.process.ready():
            self._failures.succeeded()
        python, first = self.first if self.first is not None and not jobs else (None, None)
        for name in surplus(self._views(), self._limits, first):
            self._hosts[name].end(now)
        self._keep_spare(python, first)

    def close(self) -> None:
        """Ends the hosts without a detector; the others keep running."""
        for host in self._hosts.values():
            if not host.detectors:
                host.process.terminate()

    def _place(self, need: Need, hosts: Sequence[HostView]) -> str | None:
        return place(need, hosts, self._suspicions.allowed(self._clock()), self._limits)

    def _views(self) -> list[HostView]:
        return [host.view(self._clock()) for host in self._hosts.values() if host.process.alive()]

    def _keep_spare(self, python: Path | None, first: str | None) -> None:
        if first is None and self._clock() - self._placed_at < self._limits.spare_after_seconds:
            return
        free_mb = psutil.virtual_memory().available // 2**20 - self._size.memory_mb // 2
        wanted = wants_spare(self._views(), free_mb, self._limits, first)
        records = [host.process.record for host in self._hosts.values()]
        known = (Path(record.python) for record in records if record.fingerprint == wanted and record.python)
        python = python or next(known, None)
        if wanted is not None and python is not None and self._failures.may_start(self._clock()):
            self._start(wanted, python)

    def _start(self, fingerprint: str, python: Path) -> str | None:
        """The name of the new host; None if it could not be started."""
        self._number += 1
        folder = self._folder / f"h{self._number}"
        try:
            process = HostProcess.start(folder, python, self._environment, self._size, fingerprint, now=self._clock())
        except OSError as error:
            self._start_failed(f"starting a Spark host in {folder}: {error}")
            return None
        self._hosts[folder.name] = RunningHost(process, used_at=self._clock())
        logger().info(f"starting Spark host {folder.name}", pid=process.record.pid, fingerprint=fingerprint)
        return folder.name

    def _start_failed(self, problem: str) -> None:
        logger().error(problem)
        self._failures.failed(problem, self._clock())

    def _reap(self, name: str, host: RunningHost) -> None:
        """Kills what is left of a host that has ended, and remembers who was on it."""
        host.process.kill()
        if host.ending_since is not None:
            logger().info(f"Spark host {name} has ended")
        elif not host.process.ready():
            self._start_failed(f"Spark host {name} has ended before it was ready: {host.process.last_words()}")
        else:
            detectors = sorted(host.detectors)
            logger().error(f"Spark host {name} has ended: {host.process.last_words()}", detectors=detectors)
            self._suspicions.host_ended(name, detectors, self._clock())
            for other in self._hosts.values():  # a spare is about to be used, however long it was idle
                other.used_at = self._clock()
                other.awaited.clear()  # fewer may be neighbours from now on
        del self._hosts[name]
        host.process.discard()

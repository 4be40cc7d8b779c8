"""The logs of jobs and of Spark hosts: each is shipped to its end before the folder that it is in is removed."""

import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from lozenge.host import log_attribution
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.job_status import JobPhase
from lozenge_deploy.supervision.job_process import LOG, JobProcess, job_processes
from lozenge_deploy.supervision.log_shipper import Shipper
from lozenge_deploy.supervision.recorded_process import RECORD


class JobLogs:
    """Ships the logs of jobs and hosts that run here, of ended ones to their end; removes folders of ended ones."""

    def __init__(self, kafka: KafkaSettings, cleanup_seconds: float) -> None:
        self._shipper = Shipper(kafka)
        self._cleanup_seconds, self._cleaned_up_at = cleanup_seconds, 0.0
        self._followed: dict[Path, JobProcess] = {}
        self._hosts: set[Path] = set()

    def find(self, folders: Iterable[Path]) -> None:
        """Follows the jobs below the folders of a detector, also those that ended without an agent."""
        for job in (found for folder in folders for found in job_processes(folder)):
            self._follow(job)

    def ship(self, running: Iterable[JobProcess]) -> None:
        """Ships a part of each log; `running` are all jobs that have a process. Raises nothing."""
        present = {job.folder / LOG: job for job in running}
        for file, job in present.items():
            known = self._followed.get(file)
            if known is None or known.record != job.record:
                self._follow(job)
        for file in self._followed.keys() - present.keys():
            self._shipper.unfollow(file)
        self._followed = present
        self._shipper.ship()

    def ship_hosts(self, logs: Mapping[Path, bool]) -> None:
        """Ships the log of each host with the next parts of others, each line as the app that it is of.

        `logs` says of each whether its host has ended. Then its folder is removed once all of it is shipped.
        """
        for log in logs.keys() - self._hosts:
            self._shipper.follow(log, log_attribution.APP, log.parent.name, "", log_attribution.app_of)
        ended = {log for log, has_ended in logs.items() if has_ended}
        for log in ended | (self._hosts - logs.keys()):
            self._shipper.unfollow(log)
        shipped = (ended & self._hosts) - set(self._shipper.following())
        for log in shipped:
            shutil.rmtree(log.parent, ignore_errors=True)
        self._hosts = set(logs) - shipped

    def clean_up(self, folders: Iterable[Path]) -> None:
        """Removes what is `removable` below the folders of detectors and shipped; once in `cleanup_seconds`."""
        if time.monotonic() - self._cleaned_up_at <= self._cleanup_seconds:
            return
        self._cleaned_up_at = time.monotonic()
        shipping = self._shipper.following()
        for unused in (found for folder in folders for found in removable(folder)):
            if unused / LOG not in shipping:
                shutil.rmtree(unused, ignore_errors=True)

    def close(self) -> None:
        """Waits some seconds for the records in flight."""
        self._shipper.close()

    def _follow(self, job: JobProcess) -> None:
        record, file = job.record, job.folder / LOG
        self._shipper.follow(file, record.detector, f"g{record.generation}", record.release)
        self._followed[file] = job


def removable(folder: Path) -> Iterator[Path]:
    """The folders below that of a detector in which no job will be started again.

    It keeps those of running jobs, of the newest job, and of the newest one that was live: its checkpoint may be
    needed again.
    """
    found = job_processes(folder)
    live = [i for i in found if (status := i.status()) is not None and status.phase is JobPhase.LIVE]
    kept = {i.folder for i in (*found[:1], *live[:1], *(i for i in found if i.alive()))}
    for candidate in folder.glob("g[0-9]*"):
        if candidate not in kept and (candidate in {i.folder for i in found} or not (candidate / RECORD).exists()):
            yield candidate

"""The folders of jobs that have ended: their logs are shipped to the end, and then they go."""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.job_status import Phase
from lozenge_deploy.supervision.job_process import LOG, RECORD, JobProcess, job_processes
from lozenge_deploy.supervision.log_shipper import Shipper


class JobLogs:
    """Ships the log of every job that runs here, and of one that has ended until all of it is shipped."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._shipper = Shipper(kafka)
        self._followed: dict[Path, JobProcess] = {}

    def find(self, folders: Iterable[Path]) -> None:
        """Begins with the jobs below the folders of a detector, also those that ended while nobody looked."""
        for instance in (i for folder in folders for i in job_processes(folder)):
            self._follow(instance)

    def ship(self, running: Iterable[JobProcess]) -> None:
        """Ships a part of each log; `running` are all jobs that have a process. Raises nothing."""
        present = {instance.folder / LOG: instance for instance in running}
        for file, instance in present.items():
            known = self._followed.get(file)
            if known is None or known.record != instance.record:
                self._follow(instance)
        for file in self._followed.keys() - present.keys():
            self._shipper.unfollow(file)
        self._followed = present
        self._shipper.ship()

    def tidy(self, folders: Iterable[Path]) -> None:
        """Removes what `outlived` finds below the folders of a detector, as far as it is shipped."""
        shipping = self._shipper.following()
        for place in (p for folder in folders for p in outlived(folder)):
            if place / LOG not in shipping:
                shutil.rmtree(place, ignore_errors=True)

    def close(self) -> None:
        """Waits some seconds for what is on its way."""
        self._shipper.close()

    def _follow(self, instance: JobProcess) -> None:
        facts, file = instance.record, instance.folder / LOG
        self._shipper.follow(file, facts.detector, f"g{facts.generation}", facts.release)
        self._followed[file] = instance


def outlived(folder: Path) -> Iterator[Path]:
    """The folders below a detector's in which no job will go on.

    All but those of running jobs, of the newest one, and of the newest one that was live: its checkpoint may
    be needed again.
    """
    found = job_processes(folder)
    live = [i for i in found if (report := i.status()) is not None and report.phase is Phase.LIVE]
    kept = {i.folder for i in (*found[:1], *live[:1], *(i for i in found if i.alive()))}
    for place in folder.glob("g[0-9]*"):
        if place not in kept and (place in {i.folder for i in found} or not (place / RECORD).exists()):
            yield place

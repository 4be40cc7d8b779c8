"""Writes a job's status file."""

import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import psutil

from lozenge.process.atomic_write import replace
from lozenge.protocol.coverage import Versions
from lozenge.protocol.job_spec import JobSpec
from lozenge.protocol.job_status import JOB_STATUS, JobPhase, JobStatus


class JobStatusReporter:
    """Has this process's `status`, and writes it to `folder` when it changes. Without a folder nothing is written."""

    def __init__(self, folder: Path | None) -> None:
        self._file = folder / JOB_STATUS if folder else None
        self.status = JobStatus(os.getpid(), psutil.Process().create_time())
        self._written = b""
        self._lock = threading.Lock()  # Spark's thread reports batches, the loop's thread everything else

    def update(self, **values: Any) -> None:
        """Replaces some fields, and writes the file if anything has changed."""
        with self._lock:
            self.status = msgspec.structs.replace(self.status, **values)
            text = msgspec.json.encode(self.status)
            if self._file is not None and text != self._written:
                replace(self._file, text.decode())
                self._written = text

    def query_started(self, phase: JobPhase, revision: str, versions: Versions, offsets: Mapping[int, int]) -> None:
        """A query has started at `offsets`."""
        now, changed = time.time(), versions != Versions(self.status.digest, self.status.tables)
        self.update(
            phase=phase,
            revision=revision,
            rejected="",
            digest=versions.settings,
            tables=versions.tables,
            since=dict(offsets) if changed else self.status.since,
            offsets=dict(offsets),
            query_started_at=self.status.query_started_at or now,
            last_progress_at=now,
        )

    def idle(self, spec: JobSpec) -> None:
        """The job has no query: it is a standby that is ready, or an instance without partitions."""
        phase = JobPhase.READY if spec.standby else JobPhase.LIVE
        self.update(phase=phase, generation=spec.generation, revision=spec.revision, rejected="", lag=0)

    def ready(self) -> None:
        """A standby is warm and has caught up."""
        self.update(phase=JobPhase.READY)

    def went_live(self, generation: int, since: Mapping[int, int], offsets: Mapping[int, int]) -> None:
        """The first transaction, which began at the offsets `since`, is committed."""
        now = time.time()
        self.update(
            phase=JobPhase.LIVE,
            generation=generation,
            since=dict(since),
            offsets=dict(offsets),
            last_commit_at=now,
            last_progress_at=now,
        )

    def progressed(self) -> None:
        """The query is at a batch boundary; written at most once a second."""
        if (now := time.time()) - self.status.last_progress_at > 1:
            self.update(last_progress_at=now)

    def first_batch_done(self) -> None:
        """A batch is processed; only the first one is reported."""
        if not self.status.first_batch_at:
            self.update(first_batch_at=time.time())

    def committed(self, batch: int, offsets: Mapping[int, int], records: int, dead_letters: int) -> None:
        """A batch is committed. That is a boundary too: a busy query may never be seen to wait."""
        now = time.time()
        self.update(
            batch=batch,
            offsets=dict(offsets),
            last_commit_at=now,
            last_progress_at=now,
            records=self.status.records + records,
            dead_letters=self.status.dead_letters + dead_letters,
        )

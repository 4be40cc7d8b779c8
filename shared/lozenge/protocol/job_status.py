"""What a job tells whoever runs it: a file beside its order, replaced as a whole."""

import os
import threading
import time
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
import psutil

from lozenge.process.atomic_write import replace

REPORT = "report.json"


class Phase(StrEnum):
    """Where a job stands. READY: it stands by, is warm and has caught up. LIVE: it speaks for its detector."""

    STARTING = "starting"
    STANDBY = "standing by"
    READY = "ready"
    LIVE = "live"


class JobStatus(msgspec.Struct):
    """How a job is; times in Unix seconds, 0 for never.

    `session_at` is when Spark was there, `query_at` when its first query had started, `first_batch_at` when that had
    done its first batch, `turned_at` when it last was between two batches or came further in a search for poison,
    `committed_at` when its last transaction ended, `ended_at` when it had told and committed all that it ever will.
    `since` are the offsets from which on `digest` holds. `revision` is its newest order's, once that is carried out or,
    for the reason `refused`, is not. `parked` says why it judges nothing at present. `mode` is the declared one, "" in
    reports of earlier releases.
    """

    pid: int
    created: float
    mode: str = ""
    phase: Phase = Phase.STARTING
    revision: str = ""
    generation: int = 0
    digest: str = ""
    since: dict[int, int] = {}
    refused: str = ""
    parked: str = ""
    batch: int = -1
    offsets: dict[int, int] = {}
    lag: int = 0
    session_at: float = 0.0
    query_at: float = 0.0
    first_batch_at: float = 0.0
    turned_at: float = 0.0
    committed_at: float = 0.0
    ended_at: float = 0.0
    records: int = 0
    dead_letters: int = 0


class JobStatusReporter:
    """Keeps the report of this process in `folder`; without a folder nobody asks for it."""

    def __init__(self, folder: Path | None) -> None:
        self._file = folder / REPORT if folder else None
        self.now = JobStatus(os.getpid(), psutil.Process().create_time())
        self._written = b""
        self._lock = threading.Lock()  # Spark's thread tells of batches, ours of everything else

    def say(self, **values: Any) -> None:
        """Changes some fields and writes the report if it differs."""
        with self._lock:
            for name, value in values.items():
                setattr(self.now, name, value)
            text = msgspec.json.encode(self.now)
            if self._file is not None and text != self._written:
                replace(self._file, text.decode())
                self._written = text

    def began(self, phase: Phase, revision: str, digest: str, offsets: Mapping[int, int]) -> None:
        """A query has started at `offsets`."""
        if digest != self.now.digest:
            self.now.digest, self.now.since = digest, dict(offsets)
        self.now.query_at = self.now.query_at or time.time()
        self.say(phase=phase, revision=revision, refused="", offsets=dict(offsets), turned_at=time.time())

    def took_over(self, generation: int, since: Mapping[int, int], offsets: Mapping[int, int]) -> None:
        """Its first transaction has ended, which began at the offsets `since`."""
        at = time.time()
        self.say(
            phase=Phase.LIVE,
            generation=generation,
            since=dict(since),
            offsets=dict(offsets),
            committed_at=at,
            turned_at=at,
        )

    def turned(self) -> None:
        """The query is between two batches; written at most once a second."""
        if (now := time.time()) - self.now.turned_at > 1:
            self.say(turned_at=now)

    def first_batch(self) -> None:
        """A batch is done; only the first one is told of."""
        if not self.now.first_batch_at:
            self.say(first_batch_at=time.time())

    def committed(self, batch: int, offsets: Mapping[int, int], records: int, dead_letters: int) -> None:
        """A transaction has ended, and with it a batch: a busy query may never be seen to wait."""
        at = time.time()
        self.say(
            batch=batch,
            offsets=dict(offsets),
            committed_at=at,
            turned_at=at,
            records=self.now.records + records,
            dead_letters=self.now.dead_letters + dead_letters,
        )


def read_job_status(folder: Path) -> JobStatus | None:
    """The report in a job's folder; None if there is none yet."""
    try:
        return msgspec.json.decode((folder / REPORT).read_bytes(), type=JobStatus)
    except (OSError, msgspec.DecodeError):
        return None

"""What a job reports: a file next to its spec, replaced as a whole."""

from enum import StrEnum
from pathlib import Path

import msgspec

JOB_STATUS = "job_status.json"
"""The name of the file."""
HOST_GONE = 4
"""The exit code of a job that has lost its Spark host: by it the job says nothing about itself."""


class JobPhase(StrEnum):
    """The phase of a job. A READY standby is warm and has caught up. A LIVE job publishes for its detector."""

    STARTING = "starting"
    WARMING_UP = "warming up"
    STANDBY = "standby"
    READY = "ready"
    LIVE = "live"


class JobStatus(msgspec.Struct, frozen=True):
    """The status of a job. Times are Unix seconds, 0 for never.

    - `created`: when the process with this `pid` was created.
    - `fenced`: whether a newer job fences everything that this one writes. In Real-Time Mode it does not.
    - `revision`: the newest spec that was applied, or was rejected for the reason `rejected`.
    - `digest`, `tables`: the settings and the versions of the tables in force, from the offsets `since` on.
    - `table_alarms`: why files of tables are not in force as they are now.
    - `circuit_open`: why the job is paused; "" while it is not.
    - `session_started_at`, `query_started_at`: when Spark's session and the first query had started.
    - `first_batch_at`: when the first query had processed its first batch.
    - `last_progress_at`: the last batch boundary, or the last step of a search for failing records.
    - `last_commit_at`: the end of the last transaction.
    - `finished_at`: when everything was published and committed, and the job ends.
    """

    pid: int
    created: float
    fenced: bool = True
    phase: JobPhase = JobPhase.STARTING
    revision: str = ""
    generation: int = 0
    digest: str = ""
    tables: dict[str, str] = {}
    table_alarms: list[str] = []
    since: dict[int, int] = {}
    rejected: str = ""
    circuit_open: str = ""
    batch: int = -1
    offsets: dict[int, int] = {}
    lag: int = 0
    session_started_at: float = 0.0
    query_started_at: float = 0.0
    first_batch_at: float = 0.0
    last_progress_at: float = 0.0
    last_commit_at: float = 0.0
    finished_at: float = 0.0
    records: int = 0
    dead_letters: int = 0


def read_job_status(folder: Path) -> JobStatus | None:
    """The status in a job's folder; None if there is none yet."""
    try:
        return msgspec.json.decode((folder / JOB_STATUS).read_bytes(), type=JobStatus)
    except (OSError, msgspec.DecodeError):
        return None

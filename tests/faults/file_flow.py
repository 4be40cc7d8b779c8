"""Raw records that come in files: they are written all the time, and a file source of two instances copies them."""

import threading
import time
from collections import deque
from pathlib import Path

from lozenge.file_sources.definition import FileSource
from lozenge.file_sources.topics import topics_of
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.kafka.writers import AcknowledgedWriter
from lozenge.protocol.file_positions import FileState
from lozenge.protocol.source_requests import SOURCES, SourceRelease, SourceRequest
from lozenge_deploy.operations.file_sources.requests import positions_of
from tests.faults import file_rows
from tests.faults.plan import FILE_INSTANCES
from tests.faults.records import row
from tests.streams import RAW_JSON

NAME = "payments"
FILES = "files"
"""The folder of the files, in that of the campaign."""
SHARE = 0.5
"""Of the raw records of a campaign, where some come in files."""
TICK_SECONDS, FILE_SECONDS = 0.1, 2.0
SLUG_FILES = 4
ROWS = 100
"""Of a transaction."""
LEAST_RATE = 400.0


class FileFailed(Exception):
    """A file that nothing was done to has failed, so its rows never come."""


class FileFlow(threading.Thread):
    """`rate` rows a second, a file every two seconds, and more when it is asked.

    `written` are the names of the files that are complete.
    """

    def __init__(self, folder: Path, seed: int, rate: float) -> None:
        super().__init__(name="file-flow", daemon=True)
        self.folder = folder
        self._seed, self._rate = seed, rate
        self._more: deque[int] = deque()
        self._ended = threading.Event()
        self.written: list[str] = []
        folder.mkdir(parents=True, exist_ok=True)

    def run(self) -> None:
        due, before = 0.0, time.monotonic()
        while not self._ended.wait(TICK_SECONDS) or self._more:
            while self._more:
                self._write(self._more[0])
                self._more.popleft()
            if (now := time.monotonic()) - before >= FILE_SECONDS and not self._ended.is_set():
                due, before = due + (now - before) * self._rate, now
                self._write(int(due))
                due -= int(due)

    def slug(self, count: int) -> None:
        """So many rows more, in a few files."""
        share = count // SLUG_FILES
        self._more.extend([count - share * (SLUG_FILES - 1), *[share] * (SLUG_FILES - 1)])

    @property
    def requested(self) -> bool:
        """Whether there are rows that were requested at once and are not written yet."""
        return bool(self._more)

    def end(self) -> None:
        """Stops it; all that was requested is written then."""
        self._ended.set()
        self.join()

    def _write(self, count: int) -> None:
        if not count:
            return
        at, number = time.time_ns() // 1000, len(self.written)
        name = f"{number:06d}.parquet"
        file_rows.write(self.folder, name, [row(self._seed, number, n, at + n) for n in range(count)])
        self.written.append(name)


def deploy(kafka: KafkaSettings, folder: Path, rate: float) -> None:
    """Deploys the source of the files in `folder`, slow enough that faults find it at work."""
    columns = dict.fromkeys(row(0, 0, 0, 0), "string")
    declared = {"title": "Payments", "owner": "tests", "path": str(folder), "format": "parquet", "key": "pan"}
    timing = {"complete": "rename", "rows": ROWS, "poll": "500ms"}
    source = FileSource.model_validate({**declared, **timing, "name": NAME, "topic": RAW_JSON, "columns": columns})
    ensure_topics(kafka, topics_of(kafka.topics, NAME))
    request = SourceRequest(NAME, 1, instances=len(FILE_INSTANCES), rate=max(LEAST_RATE, 2 * rate))
    rows = (SourceRelease(NAME, 1, source.model_dump(mode="json")), request)
    AcknowledgedWriter(kafka).write([SOURCES.record(kafka.topics.control.sources, each) for each in rows])


def is_copied(kafka: KafkaSettings, files: list[str]) -> bool:
    """Whether each of these was copied as a whole; raises FileFailed, BrokerUnavailable."""
    positions = {position.path: position for position in positions_of(kafka, NAME)}
    if failed := [f"{path}: {each.reason}" for path, each in positions.items() if each.state is FileState.FAILED]:
        raise FileFailed(f"failed: {'; '.join(failed)}")
    return all(name in positions and positions[name].state is FileState.DONE for name in files)

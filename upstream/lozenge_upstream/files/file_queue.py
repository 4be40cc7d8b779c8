"""What is to be done with the files of a source: they are listed and planned now and then, and done one by one.

To list a hundred thousand files and plan what to do with each takes its time, so it is not done for each file.
"""

import time
from collections import deque
from collections.abc import Collection, Mapping

from lozenge.file_sources.definition import FileSource
from lozenge.process.logging import logger
from lozenge.protocol.file_positions import FilePosition
from lozenge_upstream.files.next_step import FileStep, Work, work
from lozenge_upstream.files.storage import FoundFile, Storage

RETRY_SECONDS = 30.0
"""How long a file, or a folder, that could not be read is left alone."""


class FileQueue:
    """The files that were listed last, and what is left to do of them. Used by one thread."""

    def __init__(self, source: FileSource, storage: Storage) -> None:
        self._source, self._storage = source, storage
        self.found: list[FoundFile] = []
        self._todo = deque[Work]()
        self._retry_at: dict[str, float] = {}
        self._list_at = float("-inf")

    def is_due(self) -> bool:
        """Whether files are to be listed again."""
        return time.monotonic() >= self._list_at

    def list_files(self) -> None:
        """Lists the files; what cannot be listed is logged, and those of the last time stay."""
        self._list_at = time.monotonic() + self._source.poll.total_seconds()
        try:
            self.found = self._storage.complete(time.time_ns())
        except OSError as error:
            self._list_at = time.monotonic() + RETRY_SECONDS
            logger().error(
                f"looking for files in {self._source.path}: {error.strerror or error}",
                hint="make the folder, or name another one in source.toml",
            )

    def plan(self, known: Mapping[str, FilePosition], held: Collection[int]) -> None:
        """Plans what the owner of the partitions `held` is to do, by what is `known` of each file."""
        now = time.monotonic()
        planned = work(self._source, self.found, known, held)
        self._todo = deque(each for each in planned if self._retry_at.get(each.file.path, now) <= now)

    def clear(self) -> None:
        """Nothing is to be done before files are listed again, which is due."""
        self._todo.clear()
        self._list_at = float("-inf")

    def next(self) -> Work | None:
        """What is first to be done; None if there is nothing, or if it cannot be done now.

        A file that has changed since it was listed may not be complete any more, so it is listed again.
        """
        if not self._todo:
            return None
        first = self._todo.popleft()
        try:
            if first.step is not FileStep.COPY or self._source.appendable or self._is_as_listed(first.file):
                return first
            self.clear()
        except OSError as error:
            self.retry_later(first.file.path, error)
        return None

    def _is_as_listed(self, file: FoundFile) -> bool:
        return self._storage.now(file.path) == file.id

    def retry_later(self, path: str, error: OSError) -> None:
        """Leaves a file alone for a while."""
        self._retry_at[path] = time.monotonic() + RETRY_SECONDS
        logger().error(
            f"copying {path}: {error.strerror or error}", hint=f"it is tried again after {RETRY_SECONDS:.0f} s"
        )

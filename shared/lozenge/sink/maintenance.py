"""What keeps a table small and fast next to its commits: merged files, forgotten days, deleted leftovers."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta

from lozenge.archive.archived_topics import ArchivedTopic
from lozenge.archive.compaction import SmallFiles, contents, merged, to_merge
from lozenge.archive.data_files import delete
from lozenge.archive.delta_table import ArchiveTable, days_before
from lozenge.archive.settings import MEGABYTE
from lozenge.errors import first_line
from lozenge.process.logging import logger
from lozenge.sink_declarations.archive_sink import ArchiveSink

CLOSED_AFTER = timedelta(hours=1)
"""A day is over for compaction so long after its end: by then its last records are archived."""
EVERY = timedelta(minutes=10)
"""How often a table is looked at."""
VACUUM_EVERY = timedelta(hours=24)


class Maintenance:
    """The upkeep of one table, one step at a time, by the thread that commits to it."""

    def __init__(self, topic: ArchivedTopic, table: ArchiveTable, sink: ArchiveSink) -> None:
        self._table, self._file_bytes = table, sink.file_mb * MEGABYTE
        self._keep = sink.retention.get(topic.records)
        self._looked_at: datetime | None = None
        self._vacuumed_at: datetime | None = None
        self._steps: Iterator[None] = iter(())

    def step(self, now: datetime) -> bool:
        """Does the next step, if there is one; false if nothing is left to do for now.

        What a full disk prevents is tried again with the next look at the table.
        """
        if self._looked_at is None or now - self._looked_at >= EVERY:
            self._looked_at = now
            self._steps = self._all(now)
        try:
            return next(self._steps, self) is None
        except OSError as error:
            logger().error(
                f"the files of {self._table.topic} cannot be merged or deleted: {first_line(error)}",
                hint="free space on the disk of the archive; commits do not depend on it",
            )
            return False

    def _all(self, now: datetime) -> Iterator[None]:
        self._table.refresh()
        if self._keep is not None and (old := days_before(self._table.files(), oldest_kept(now, self._keep))):
            if self._table.replace(old, []):
                logger().info(f"retention removed {len(old)} files of {self._table.topic}")
            yield
        for small in to_merge(self._table.files(), closed_before(now), self._file_bytes):
            self._merge(small)
            yield
        if self._vacuumed_at is None or now - self._vacuumed_at >= VACUUM_EVERY:
            self._vacuumed_at = now
            self._table.vacuum()
            yield

    def _merge(self, small: SmallFiles) -> None:
        folder = self._table.folder
        before = contents(folder, small)
        new = merged(folder, small, self._table.columns, self._file_bytes)
        if contents(folder, small) != before:  # the new files may have what was erased from the old ones meanwhile
            delete(folder, new)
            logger().info(f"files of {self._table.topic} of {small.day} were replaced while they were merged")
        elif not self._table.replace(small.files, new):
            logger().info(f"files of {self._table.topic} of {small.day} have changed while they were merged")


def closed_before(now: datetime) -> date:
    """The first day that may get rows still."""
    return (now - CLOSED_AFTER).date()


def oldest_kept(now: datetime, keep: timedelta) -> date:
    """The first day whose rows are kept."""
    return (now - keep).date()

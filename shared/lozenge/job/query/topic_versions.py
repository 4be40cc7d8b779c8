"""The versions of a list or a table of the platform that queries read: as it is now, as it becomes, or as recorded.

A version is the offset of the topic behind its last change. Each is written as Parquet once, and queries read that.
Records that are no rows of the topic are skipped. What a table holds was validated as it was loaded. It is refused only
if it lacks a column that the detector declares; then the last good version stays.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from lozenge.detector.tables.declared_table import Table
from lozenge.detector.tables.topic_content import content_of
from lozenge.errors import first_line
from lozenge.kafka.compacted_topic import CompactedTopic
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.versioned_topics import read_records
from lozenge.process.file_versions import VersionFolder
from lozenge.process.last_good import Bounds, Contents, refusals
from lozenge.protocol.content_version import changed_of

Records = Mapping[str, Any]
MOST_READS = 100
"""How often a poll takes what has come, at most: a topic that changes all the time must not hold the job."""
_LOADED = Bounds(shrinks_to=0.0, grows_to=float("inf"), may_be_empty=True)
"""How many rows there may be was decided where they were written."""


class _TopicVersions:
    """The versions of `table` in `folder`, of which one at most is in force. One thread uses it."""

    def __init__(self, kafka: KafkaSettings, table: Table, folder: Path) -> None:
        self._content = content_of(table)
        self.source = self._content.source
        self.refused: tuple[str, ...] = ()
        self.in_force: Contents | None = None
        self._kafka, self._folder, self._versions = kafka, folder, VersionFolder(folder)
        self._topic = self._content.topic(kafka.topics)

    def path(self, version: str) -> Path:
        """What users of this version read."""
        return self._versions.path(version)

    def close(self) -> None:
        """Closes the connection, if there is one."""

    def _exists(self) -> bool:
        there = self._topic in partitions(self._kafka)
        self.refused = () if there else (f"there is no topic {self._topic}; {self._content.creation}",)
        return there

    def _take(self, changed: int, records: Records) -> None:
        found = self._content.contents(changed, records)
        self.refused = refusals(found, self.in_force, _LOADED)
        if self.refused:
            return
        place = self.path(found.digest)
        if place.exists():
            os.utime(place)
        else:
            ready = self._folder / f".{uuid4().hex}.ready"
            try:
                self._content.write(records, ready)
            except ValueError as error:  # somebody else than the loader has written to the topic
                self.refused = (f"it has a value of another type than its column: {first_line(error)}",)
                shutil.rmtree(ready, ignore_errors=True)
                return
            try:
                ready.rename(place)
            except OSError:
                if not place.exists():
                    raise
                shutil.rmtree(ready)  # a backfill of the same job has written the same version meanwhile
        self.in_force = found
        self._versions.delete_old(found)


class FollowedTopic(_TopicVersions):
    """The table as it becomes. All changes of one transaction come into force together.

    The version in force survives a restart, for the case that the topic then has none that may follow it.
    """

    def __init__(self, kafka: KafkaSettings, table: Table, folder: Path) -> None:
        super().__init__(kafka, table, folder)
        self._rows: CompactedTopic[Any] | None = None
        self._whole: tuple[int, Records] = (0, {})
        self._examined: int | None = None
        self.in_force = self._versions.recorded()

    def poll(self) -> None:
        """Takes what has been committed by now; the first poll reads it all, and raises BrokerUnavailable."""
        if self._rows is None:
            if not self._exists():
                return
            self._rows = CompactedTopic(self._kafka, self._topic, self._content.decode, self._ended)
            for _ in self._rows.catch_up():
                pass
        for _ in range(MOST_READS):
            if not [*self._rows.poll(0.0)]:
                break
        changed, records = self._whole
        if self._examined != changed:
            self._examine(changed, records)
            self._examined = changed

    def close(self) -> None:
        if self._rows is not None:
            self._rows.close()
            self._rows = None

    def _examine(self, changed: int, records: Records) -> None:
        self._take(changed, records)
        if not self.refused and self.in_force is not None:
            self._versions.record(self.in_force)

    def _ended(self) -> None:
        """Between two ends it may know a part of a transaction."""
        assert self._rows is not None
        if self._rows.changed != self._whole[0]:
            self._whole = self._rows.changed, dict(self._rows.rows)


class PresentTopic(_TopicVersions):
    """The table as it is at each poll, for tools that end soon."""

    def poll(self) -> None:
        """Reads the topic to its present end; raises BrokerUnavailable."""
        if self._exists():
            self._take(*read_records(self._kafka, self._topic, self._content.decode))


class RecordedTopic(_TopicVersions):
    """The table as of a recorded version; refused if its topic no longer has that."""

    def __init__(self, kafka: KafkaSettings, table: Table, folder: Path, recorded: str) -> None:
        super().__init__(kafka, table, folder)
        self._recorded = recorded

    def poll(self) -> None:
        """Reads the topic up to the version, once; raises BrokerUnavailable."""
        if self.in_force is not None or self.refused or not self._exists():
            return
        offset = changed_of(self._recorded)
        _, records = read_records(self._kafka, self._topic, self._content.decode, before=offset)
        if self._content.contents(offset, records).digest == self._recorded:
            self._take(offset, records)
        else:
            self.refused = (
                f"its version {self._recorded} cannot be read any more: {self._topic} has forgotten records that were "
                "replaced since, or was created again",
            )


def recorded_topics(
    kafka: KafkaSettings, versions: Mapping[str, str]
) -> Callable[[Table, Path], RecordedTopic | PresentTopic]:
    """Makes tables as of the `versions` by topic; one that has none there is read as it is now."""

    def make(table: Table, folder: Path) -> RecordedTopic | PresentTopic:
        recorded = versions.get(table.followed)
        return RecordedTopic(kafka, table, folder, recorded) if recorded else PresentTopic(kafka, table, folder)

    return make

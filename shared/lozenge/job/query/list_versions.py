"""The versions of a reference list that queries read: as it is now, as it becomes, or as it was recorded.

A version is the offset of the list's topic behind its last change. Each is written as Parquet once, and queries read
that. A list has no bad version: records that are no entries are skipped, and changes were checked as they were made.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import uuid4

from lozenge.contracts.topics import reference_list
from lozenge.detector.tables.reference_lists import write_entries
from lozenge.kafka.compacted_topic import CompactedTopic
from lozenge.kafka.reference_lists import read_entries
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.process.file_versions import KEPT
from lozenge.process.last_good import Contents
from lozenge.protocol.list_entries import ListEntry, changed_of, decode, version

Entries = Mapping[str, ListEntry]
MOST_READS = 100
"""How often a poll takes what has come, at most: a list that changes all the time must not hold the job."""


class _ListVersions:
    """The versions of the list `name` in `folder`, of which one at most is in force. One thread uses it."""

    def __init__(self, kafka: KafkaSettings, name: str, folder: Path) -> None:
        self.source = f"list {name}"
        self.refused: tuple[str, ...] = ()
        self.in_force: Contents | None = None
        self._kafka, self._name, self._folder = kafka, name, folder
        self._topic = reference_list(kafka.topics, name).name

    def path(self, version: str) -> Path:
        """What users of this version read."""
        return self._folder / version

    def close(self) -> None:
        """Closes the connection, if there is one."""

    def _exists(self) -> bool:
        there = self._topic in partitions(self._kafka)
        missing = f"there is no topic {self._topic}; `lozenge list add {self._name} VALUE --new` creates it"
        self.refused = () if there else (missing,)
        return there

    def _take(self, changed: int, entries: Entries) -> None:
        found = version(changed, entries.values())
        place = self.path(found)
        if place.exists():
            os.utime(place)
        else:
            ready = self._folder / f".{uuid4().hex}.ready"
            write_entries(entries.values(), ready)
            try:
                ready.rename(place)
            except OSError:
                if not place.exists():
                    raise
                shutil.rmtree(ready)  # a backfill of the same job has written the same version meanwhile
        self.in_force = Contents(found, len(entries))
        others = [path for path in self._folder.iterdir() if path.name[0] != "." and path != place]
        for old in sorted(others, key=lambda path: path.stat().st_mtime_ns, reverse=True)[KEPT - 1 :]:
            shutil.rmtree(old, ignore_errors=True)


class FollowedList(_ListVersions):
    """The list as it becomes. All changes of one transaction come into force together."""

    def __init__(self, kafka: KafkaSettings, name: str, folder: Path) -> None:
        super().__init__(kafka, name, folder)
        self._rows: CompactedTopic[ListEntry] | None = None
        self._whole: tuple[int, Entries] = (0, {})

    def poll(self) -> None:
        """Takes what has been committed by now; the first poll reads it all, and raises BrokerUnavailable."""
        if self._rows is None:
            if not self._exists():
                return
            self._rows = CompactedTopic(self._kafka, self._topic, decode, self._ended)
            for _ in self._rows.catch_up():
                pass
        for _ in range(MOST_READS):
            if not [*self._rows.poll(0.0)]:
                break
        changed, entries = self._whole
        if self.in_force is None or changed_of(self.in_force.digest) != changed:
            self._take(changed, entries)

    def close(self) -> None:
        if self._rows is not None:
            self._rows.close()
            self._rows = None

    def _ended(self) -> None:
        """Between two ends it may know a part of a transaction."""
        assert self._rows is not None
        if self._rows.changed != self._whole[0]:
            self._whole = self._rows.changed, dict(self._rows.rows)


class PresentList(_ListVersions):
    """The list as it is at each poll, for tools that end soon."""

    def poll(self) -> None:
        """Reads the list to its present end; raises BrokerUnavailable."""
        if self._exists():
            self._take(*read_entries(self._kafka, self._topic))


class RecordedList(_ListVersions):
    """The list as of a recorded version; refused if its topic no longer has that."""

    def __init__(self, kafka: KafkaSettings, name: str, folder: Path, recorded: str) -> None:
        super().__init__(kafka, name, folder)
        self._recorded = recorded

    def poll(self) -> None:
        """Reads the list up to the version, once; raises BrokerUnavailable."""
        if self.in_force is not None or self.refused or not self._exists():
            return
        offset = changed_of(self._recorded)
        _, entries = read_entries(self._kafka, self._topic, before=offset)
        if version(offset, entries.values()) == self._recorded:
            self._take(offset, entries)
        else:
            self.refused = (
                f"its version {self._recorded} cannot be read any more: {self._topic} has forgotten entries that were "
                "replaced since, or was created again",
            )


def recorded_lists(
    kafka: KafkaSettings, versions: Mapping[str, str]
) -> Callable[[str, Path], RecordedList | PresentList]:
    """Makes tables of lists as of the `versions` by list; a list that has none there is read as it is now."""

    def make(name: str, folder: Path) -> RecordedList | PresentList:
        recorded = versions.get(name)
        return RecordedList(kafka, name, folder, recorded) if recorded else PresentList(kafka, name, folder)

    return make

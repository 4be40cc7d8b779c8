"""Tables that are compacted topics: reference lists, and tables of the platform. Both are followed in the same way."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from lozenge.contracts.topics import Topics
from lozenge.detector.tables.declared_table import Table
from lozenge.detector.tables.platform_rows import PlatformRows
from lozenge.detector.tables.reference_lists import ListedEntries
from lozenge.process.last_good import Contents

R = TypeVar("R")


class TopicContent(Protocol[R]):
    """What the topic of a table holds. `source` names it for people, `creation` says what makes the topic."""

    @property
    def source(self) -> str: ...

    @property
    def creation(self) -> str: ...

    def topic(self, topics: Topics) -> str:
        """The name of the topic."""

    def decode(self, key: bytes, value: bytes) -> R:
        """What is in a record; raises ValueError for one that is none of it."""

    def contents(self, changed: int, records: Mapping[str, R]) -> Contents:
        """What the table is after the records before offset `changed`; its digest is the version."""

    def write(self, records: Mapping[str, R], folder: Path) -> None:
        """Writes the table as Parquet into the new `folder`; raises OSError."""


def content_of(table: Table) -> TopicContent[Any]:
    """The content of a declared table that is a topic."""
    return ListedEntries(table.list) if table.list else PlatformRows(table.table, table.columns)


class EmptyTopic:
    """A table without rows, where there is no broker: in the test kit, and where a detector describes itself."""

    def __init__(self, table: Table, folder: Path) -> None:
        self._content, self._folder = content_of(table), folder
        self.source = self._content.source
        self.refused: tuple[str, ...] = ()
        self.in_force = Contents(self._content.contents(0, {}).digest)

    def poll(self) -> None:
        """Writes the empty table, once."""
        if not (place := self.path(self.in_force.digest)).exists():
            self._content.write({}, place)

    def path(self, version: str) -> Path:
        """The folder of the empty table."""
        return self._folder / version

    def close(self) -> None:
        """There is nothing to close."""

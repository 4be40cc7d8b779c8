"""One archived topic as a Delta table, which also owns how far the topic is archived.

A commit has rows and, for each input partition, an app transaction with the partition's end offset. The table refuses
a commit of a writer that does not know the newest end: so rows are neither lost nor there twice, whatever is killed.
Readers see a commit as a whole or not at all.

Commits that rewrite files have an app transaction of their own, with a number that rises. Two of them at one version
would both keep their rows, since `deltalake` refuses neither; the second one is refused by that number.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from lozenge.archive.columns import PARTITIONED_BY, evolution_problems, grows
from lozenge.archive.data_files import DataFile, delete, written
from lozenge.contracts.record import format_positions
from lozenge.errors import ConfigError, Fenced, Retryable, SchemaError

ATTEMPTS = 5
"""How often a commit is tried after others that do not concern its rows."""
LOG_DAYS = 7
"""How long versions of a table can be read, and files that were replaced stay."""
_PROPERTIES = {
    "delta.logRetentionDuration": f"interval {LOG_DAYS} days",
    "delta.deletedFileRetentionDuration": f"interval {LOG_DAYS} days",
    "delta.checkpointInterval": "60",
}
_CONFLICTS_RETRIED = 15
_COLOUR = re.compile(r"\x1b\[\d+m")


class ArchiveUnwritable(Retryable):
    """The folder of a table cannot be written, as on a full disk; nothing of the commit is there."""


Ends = Mapping[int, int]
"""By input partition, the offset behind the last one that is archived."""


def transaction_of(topic: str, partition: int) -> str:
    """The app transaction that holds the end of an input partition."""
    return f"archive/{topic}/{partition}"


class ArchiveTable:
    """A handle on the table of `topic`, at the version that it has read last; queries know it as `view`."""

    def __init__(self, table: DeltaTable, folder: Path, topic: str, view: str, buckets: int) -> None:
        self._table, self.folder = table, folder
        self.topic, self.view, self.buckets = topic, view, buckets
        self._rewriting = f"archive/{topic}/rewrites"

    @classmethod
    def open(cls, folder: Path, topic: str, view: str, columns: pa.Schema, buckets: int) -> "ArchiveTable":
        """The table in `folder`, which is created if there is none, and which has at least these columns then.

        Raises ConfigError if it was created with another number of buckets or for another topic, SchemaError if it
        has a column of another type, ArchiveUnwritable.
        """
        if not DeltaTable.is_deltatable(str(folder)):
            with _writing(topic, folder):
                DeltaTable.create(
                    folder,
                    columns,
                    mode="ignore",
                    partition_by=PARTITIONED_BY,
                    name=topic,
                    description=json.dumps({"topic": topic, "view": view, "buckets": buckets}),
                    configuration=_PROPERTIES,
                )
        found = cls.existing(folder)
        if (found.topic, found.buckets) != (topic, buckets):
            raise ConfigError(
                f"opening the table {folder}: it has {found.topic} in {found.buckets} buckets, "
                f"not {topic} in {buckets}",
                hint="a table keeps its number of buckets: put it back, or begin another archive",
            )
        with _writing(topic, folder):
            found.grow(columns)
        return found

    @classmethod
    def existing(cls, folder: Path) -> "ArchiveTable":
        """The table in `folder`; raises ConfigError if there is none of an archive."""
        try:
            table = DeltaTable(folder)
            declared = json.loads(table.metadata().description or "{}")
            return cls(table, folder, str(declared["topic"]), str(declared["view"]), int(declared["buckets"]))
        except Exception as error:  # of deltalake, and of what others have written there
            raise ConfigError(
                f"opening the table {folder}: {type(error).__name__}: {error}",
                hint="name a folder that an archive has written",
            ) from error

    @property
    def version(self) -> int:
        """That of the newest commit that this handle has seen."""
        return self._table.version()

    @property
    def columns(self) -> pa.Schema:
        """The columns that the table has now."""
        columns: Any = self._table.schema().to_arrow()
        return pa.schema(columns)

    def refresh(self) -> None:
        """Reads the commits of others."""
        self._table.update_incremental()

    def grow(self, columns: pa.Schema) -> None:
        """Adds those of `columns` that the table has not; older rows have nulls there. Raises SchemaError."""
        if problems := evolution_problems(self.columns, columns):
            raise SchemaError(
                f"archiving {self.topic}: the columns of the table do not fit",
                problems=problems,
                hint="a stream's schema changes compatibly within a version; another version has another topic",
            )
        if grows(self.columns, columns):
            write_deltalake(self._table, columns.empty_table(), mode="append", schema_mode="merge")

    def ends(self, partitions: Iterable[int]) -> dict[int, int]:
        """How far each partition is archived, as of the last refresh; none of what never was."""
        found = {p: self._table.transaction_version(transaction_of(self.topic, p)) for p in partitions}
        return {partition: end for partition, end in found.items() if end is not None}

    def append(self, rows: pa.Table, seen: Ends, ends: Ends) -> None:
        """Commits rows, and moves the ends of some partitions to `ends`; both or neither. There may be no rows.

        `rows` are sorted by day, bucket, partition and offset. `seen` are the ends that the writer knew when it read
        these records; none of a partition that had none. Raises Fenced, and leaves the table as it was, if another
        writer has moved one of them; ArchiveUnwritable, and leaves it so too; SchemaError if the table has a column of
        another type.
        """
        with _writing(self.topic, self.folder):
            self.grow(rows.schema)
            files = written(self.folder, rows)
            moved = [Transaction(transaction_of(self.topic, p), end) for p, end in ends.items()]
            notes = {"ends": json.dumps({str(p): [seen.get(p), end] for p, end in ends.items()})}
            for attempt in range(ATTEMPTS):
                self.refresh()
                self._refuse_if_moved(seen, ends)
                try:
                    self._commit([file.added(new_rows=True) for file in files], moved, notes)
                    return
                except CommitFailedError:
                    # either another writer has moved an end, or the table has got a column
                    if attempt == ATTEMPTS - 1:
                        raise
                except OSError:
                    delete(self.folder, files)
                    raise

    def files(self) -> list[DataFile]:
        """Every file of the version that was read last, by day, bucket, partition and offset."""
        rows = pa.table(self._table.get_add_actions(flatten=True)).to_pylist()
        return sorted(map(DataFile.of, rows), key=lambda f: (f.day, f.bucket, f.partition, f.offset))

    def replace(self, old: Sequence[DataFile], new: Sequence[DataFile]) -> bool:
        """Puts `new` files in place of `old` ones of the version that was read last; with no new ones, rows are gone.

        False, and nothing changes, if an old file is none of them, or another process has rewritten files since.
        """
        if not {file.path for file in old} <= {file.path for file in self.files()}:
            return False
        number = (self._table.transaction_version(self._rewriting) or 0) + 1
        actions: list[AddAction | RemoveAction] = [
            *(file.added(new_rows=False) for file in new),
            *(file.removed(rows=not new) for file in old),
        ]
        try:
            self._commit(actions, [Transaction(self._rewriting, number)], {"rewritten": str(len(old))})
        except CommitFailedError:
            return False
        return True

    def vacuum(self, keep: timedelta = timedelta(days=LOG_DAYS)) -> int:
        """Deletes files that no version of the last `keep` has, such as those of killed writers.

        A file of that time stays: a writer may be about to commit it. Returns how many are gone.
        """
        hours = int(keep.total_seconds() // 3600)
        return len(self._table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True))

    def committed_at(self) -> datetime | None:
        """When the newest version was committed."""
        newest = self._table.history(1)
        return datetime.fromtimestamp(newest[0]["timestamp"] / 1000, UTC) if newest else None

    def _refuse_if_moved(self, seen: Ends, moving: Iterable[int]) -> None:
        found = self.ends(moving)
        if moved := {p: end for p, end in found.items() if end != seen.get(p)}:
            raise Fenced(
                f"archiving {self.topic}: another writer has archived to {format_positions(sorted(moved.items()))}",
                hint="nothing was written; the other writer continues. Only one sink may write a table",
            )

    def _commit(
        self, actions: list[AddAction | RemoveAction], transactions: list[Transaction], notes: dict[str, str]
    ) -> None:
        properties = CommitProperties(
            custom_metadata=notes, max_commit_retries=_CONFLICTS_RETRIED, app_transactions=transactions
        )
        try:
            self._table.create_write_transaction(
                actions, "append", self._table.schema(), PARTITIONED_BY, commit_properties=properties
            )
        except CommitFailedError:
            raise
        except (OSError, DeltaError):
            # a commit may be there, and only the checkpoint that follows some commits is not
            self.refresh()
            if any(self._table.transaction_version(each.app_id) != each.version for each in transactions):
                raise
        self.refresh()


@contextmanager
def _writing(topic: str, folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ArchiveUnwritable(
            f"archiving {topic}: {folder} cannot be written: {_said(error)}",
            hint="free space on its disk, or check its permissions; nothing is lost, and the sink tries it again",
        ) from error


def _said(error: OSError) -> str:
    """All lines of `deltalake`, whose last one says why, without their colours."""
    lines = [line.strip(" ↳") for line in _COLOUR.sub("", str(error)).splitlines()]
    return ": ".join(filter(None, lines))


def days_before(files: Iterable[DataFile], day: date) -> list[DataFile]:
    """The files of the days before `day`."""
    return [file for file in files if file.day < day]

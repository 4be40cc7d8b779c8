"""Copies one file: a transaction has the rows of a piece, the dead letters of its bad rows, and the new position.

**Guarantee: each row once, in the order of its file within a partition, for `read_committed` readers.** A process that
dies before the commit has written nothing. The next owner of the file's partition fences it before it reads.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from lozenge.contracts.dead_letters import dead_letter_headers
from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.record import Record
from lozenge.errors import DecodeError
from lozenge.file_sources.definition import After, FileSource, Format, drift
from lozenge.kafka.writers import TransactionalWriter
from lozenge.process.logging import logger
from lozenge.protocol.file_positions import FileId, FilePosition, FileState, Place, record
from lozenge_upstream.files.avro_file import AvroFiles
from lozenge_upstream.files.line_files import CsvFiles, JsonLinesFiles
from lozenge_upstream.files.next_step import FileStep, Work, too_bad
from lozenge_upstream.files.parquet_file import ParquetFiles
from lozenge_upstream.files.pieces import FileReader, Piece, UnreadableFile
from lozenge_upstream.files.storage import Storage, digest

ROW_HEADER = "lozenge-file-row"
"""Of a raw record: the path of its file, ":", and the number of its row, from 0 on."""
READERS: dict[Format, FileReader] = {
    Format.PARQUET: ParquetFiles(),
    Format.AVRO: AvroFiles(),
    Format.CSV: CsvFiles(),
    Format.JSON_LINES: JsonLinesFiles(),
}


@dataclass(frozen=True)
class Targets:
    """Where a source writes: topics with the raw topic's partition count."""

    raw: str
    partitions: int
    positions: str
    dead_letters: str
    dead_letter_partitions: int


class Copier:
    """Copies the files of one source. `size` is asked before each piece for its largest number of rows."""

    def __init__(self, source: FileSource, storage: Storage, targets: Targets, instance: str) -> None:
        self._source, self._storage, self._targets, self._instance = source, storage, targets, instance
        self._reader = READERS[source.format]

    def steps(
        self, work: Work, writer: TransactionalWriter, size: Callable[[], int]
    ) -> Generator[FilePosition, None, None]:
        """Does what is to be done, and yields the position after each commit; a caller that stops asking ends it there.

        Raises as `TransactionalWriter.write` does, and OSError if a file cannot be read or moved.
        """
        path, known = work.file.path, work.known
        if work.step is FileStep.CLEAR:
            self._clear(path)
            return
        begun = known or FilePosition(path, work.file.id, FileState.COPYING, instance=self._instance)
        if work.step is FileStep.FAIL:
            yield self._fail(writer, begun, _after(begun, "it changed"))
            return
        try:
            yield from self._copied(work.file.id, begun, writer, size)
        except FileNotFoundError:
            yield self._fail(writer, begun, "it is gone")
        except UnreadableFile as error:
            yield self._fail(writer, begun, str(error))

    def fail_gone(self, writer: TransactionalWriter, position: FilePosition) -> FilePosition:
        """Fails a file that is not there any more."""
        return self._fail(writer, position, _after(position, "it is gone"))

    def _copied(
        self, now: FileId, begun: FilePosition, writer: TransactionalWriter, size: Callable[[], int]
    ) -> Iterator[FilePosition]:
        """As `steps`; an error that is the file's leaves it failed at its last commit."""
        with self._storage.opened(begun.path) as file:
            if begun.id.digest and digest(file, begun.id.size) != begun.id.digest:
                yield self._fail(writer, begun, _after(begun, "it changed"))
                return
            layout = self._reader.layout(file, self._source)
            if self._source.columns and (differs := drift(self._source.columns, layout.columns)):
                yield self._fail(writer, begun, f"its columns differ: {'; '.join(differs)}")
                return
            id = msgspec.structs.replace(now, digest=digest(file, now.size))
            position = msgspec.structs.replace(begun, id=id, state=FileState.COPYING, total=layout.rows, reason="")
            with closing(self._reader.pieces(file, self._source, begun.place, size)) as pieces:
                yield from self._written(pieces, position, writer)

    def _written(
        self, pieces: Iterator[Piece], position: FilePosition, writer: TransactionalWriter
    ) -> Iterator[FilePosition]:
        while True:
            try:
                piece = next(pieces)
            except UnreadableFile as error:
                yield self._fail(writer, position, str(error))
                return
            if not self._is_unchanged(position):
                yield self._fail(writer, position, _after(position, "it changed"))
                return
            ended = not piece.rows and not piece.bad
            state = FileState.DONE if ended else FileState.COPYING
            position = self._moved(position, piece.end, state, position.bad + len(piece.bad))
            if too_bad(self._source, position, ended=ended):
                problem = f"{position.bad:,} of {position.place.rows:,} rows cannot be read"
                allowed = f"max_bad allows {self._source.max_bad:.2%}"
                position = self._moved(position, piece.end, FileState.FAILED, position.bad, f"{problem}; {allowed}")
            writer.write([*self._records(piece, position), record(self._targets.positions, position)])
            yield position
            if position.state is FileState.DONE and self._source.after is not After.KEEP:
                self._clear(position.path)
            if position.state is not FileState.COPYING:
                return

    def _is_unchanged(self, position: FilePosition) -> bool:
        now = self._storage.now(position.path)
        grown = self._source.appendable and now is not None and now.size >= position.id.size
        return now is not None and (grown or now.is_same(position.id))

    def _records(self, piece: Piece, position: FilePosition) -> Iterator[Record]:
        path, partitions, raw = position.path.encode(), self._targets.partitions, self._targets.raw
        of_file = partition_of(path, partitions)
        for number, key, value in piece.rows:
            partition = of_file if key is None else partition_of(key, partitions)
            yield Record(raw, partition, key, value, [(ROW_HEADER, b"%s:%d" % (path, number))])
        for row in piece.bad:
            headers = dead_letter_headers(
                [(ROW_HEADER, b"%s:%d" % (path, row.number))],
                topic=self._targets.raw,
                partition=-1,
                offset=-1,
                app=self._source.app,
                stage="decode",
                error=DecodeError(f"reading row {row.number} of {position.path}: {row.problem}"),
                failed_at=datetime.now(UTC),
            )
            partition = partition_of(path, self._targets.dead_letter_partitions)
            yield Record(self._targets.dead_letters, partition, path, row.value, headers)

    def _fail(self, writer: TransactionalWriter, position: FilePosition, reason: str) -> FilePosition:
        failed = self._moved(position, position.place, FileState.FAILED, position.bad, reason)
        writer.write([record(self._targets.positions, failed)])
        return failed

    def _moved(
        self, position: FilePosition, place: Place, state: FileState, bad: int, reason: str = ""
    ) -> FilePosition:
        return msgspec.structs.replace(
            position,
            place=place,
            state=state,
            bad=bad,
            reason=reason,
            instance=self._instance,
            at=datetime.now(UTC),
        )

    def _clear(self, path: str) -> None:
        if self._source.after is After.DELETE:
            self._storage.delete(path)
        else:
            self._storage.move(path, self._source.move_to)
        logger().info(f"{path} was copied: {self._source.after}")


def _after(position: FilePosition, what: str) -> str:
    return f"{what} after {position.place.rows:,} of its rows were copied"

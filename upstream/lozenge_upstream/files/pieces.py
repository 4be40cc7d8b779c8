"""Some rows of a file, in its order, as records: what every format is read as."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple, Protocol, TypeAlias

from lozenge.file_sources.definition import FileSource
from lozenge.protocol.file_positions import Place

FileRow: TypeAlias = tuple[int, bytes | None, bytes]
"""A row by its number in the file, from 0 on; its key; and its value, a JSON object. There are millions of them."""


class BadRow(NamedTuple):
    """A row that cannot be read, as far as its bytes are known."""

    number: int
    value: bytes
    problem: str


@dataclass(frozen=True)
class Piece:
    """Consecutive rows of a file, and where the next one is."""

    end: Place
    rows: list[FileRow] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)


class UnreadableFile(ValueError):
    """A file that is not of its format, or is damaged; the sentence says where."""


class Layout(NamedTuple):
    """What a file says of itself: columns with their types, and rows; 0 where that is not known."""

    columns: dict[str, str]
    rows: int = 0


class FileReader(Protocol):
    """Reads files of one format. Both raise UnreadableFile, and OSError."""

    def layout(self, file: BinaryIO, source: FileSource) -> Layout:
        """What the file says of itself."""
        ...

    def pieces(
        self, file: BinaryIO, source: FileSource, place: Place, size: Callable[[], int]
    ) -> Generator[Piece, None, None]:
        """All rows from `place` on. A piece has `size()` rows at most, asked before each; the last may have none."""
        ...


MOST_BYTES = 1_000_000
"""Of the value of a record. Brokers take a little more, for its key and headers."""


def piece_of(first: int, end: Place, values: list[bytes], keys: list[bytes | None], key: str) -> Piece:
    """The piece with these values from row `first` on; those without their `key`, or too large, are bad rows."""
    if (not key or None not in keys) and max(map(len, values), default=0) <= MOST_BYTES:
        return Piece(end, list(zip(range(first, first + len(values)), keys, values, strict=True)))
    piece = Piece(end)
    for number, (value, its_key) in enumerate(zip(values, keys, strict=True), first):
        if key and its_key is None:
            piece.bad.append(BadRow(number, value, f"{key}, the key of its record, is null"))
        elif len(value) > MOST_BYTES:
            piece.bad.append(BadRow(number, value[:MOST_BYTES], f"it has {len(value):,} bytes, above {MOST_BYTES:,}"))
        else:
            piece.rows.append((number, its_key, value))
    return piece

"""What is to be done with a file: pure decisions over what is there and what was copied of it."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from lozenge.file_sources.definition import After, FileSource
from lozenge.file_sources.topics import partition_of_file
from lozenge.protocol.file_positions import FilePosition, FileState
from lozenge.protocol.source_requests import FileRetry
from lozenge_upstream.files.storage import FoundFile


class FileStep(StrEnum):
    """COPY: from the first row. RESUME: from the next one. FAIL: it changed. CLEAR: delete or move it. NOTHING."""

    COPY = "copy"
    RESUME = "resume"
    FAIL = "fail"
    CLEAR = "clear"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Work:
    """A file, what is to be done with it, and what is known of it."""

    file: FoundFile
    step: FileStep
    known: FilePosition | None


def next_step(source: FileSource, file: FoundFile, known: FilePosition | None) -> FileStep:
    """What is to be done with a file that is there and complete."""
    if known is None:
        return FileStep.COPY
    grown = source.appendable and file.id.size >= known.id.size and file.id.size > known.place.offset
    match known.state:
        case FileState.FAILED:
            return FileStep.NOTHING
        case FileState.COPYING:
            return FileStep.RESUME if known.id.is_same(file.id) or grown else FileStep.FAIL
    if known.id.is_same(file.id):
        return FileStep.NOTHING if source.after is After.KEEP else FileStep.CLEAR
    return FileStep.RESUME if grown else FileStep.FAIL


def as_requested(positions: Mapping[str, FilePosition], retries: Mapping[str, FileRetry]) -> dict[str, FilePosition]:
    """The positions, but for failed files that an operator wants to be tried again since."""
    found = dict(positions)
    for path, retry in retries.items():
        known = positions.get(path)
        if known is None or known.state is not FileState.FAILED or retry.at <= known.at:
            continue
        if retry.from_start:
            del found[path]
        else:
            found[path] = msgspec.structs.replace(known, state=FileState.COPYING)
    return found


def counts(
    found: Iterable[FoundFile], known: Mapping[str, FilePosition], held: Collection[int]
) -> tuple[dict[str, int], int]:
    """The number of the files of `held` by state, "waiting" among them, and the bytes of what is not copied yet."""
    waiting = [file for file in found if file.path not in known and partition_of_file(file.path) in held]
    states = Counter(str(each.state) for each in known.values())
    open_bytes = sum(each.id.size for each in known.values() if each.state is FileState.COPYING)
    return {"waiting": len(waiting), **states}, open_bytes + sum(file.id.size for file in waiting)


def work(
    source: FileSource, found: Iterable[FoundFile], known: Mapping[str, FilePosition], held: Collection[int]
) -> Iterator[Work]:
    """What is to be done by the owner of the partitions `held`: first what was begun, then in the order of `found`."""
    mine = [file for file in found if partition_of_file(file.path) in held]
    steps = [Work(file, next_step(source, file, known.get(file.path)), known.get(file.path)) for file in mine]
    open_ = [each for each in steps if each.step is not FileStep.NOTHING]
    yield from sorted(open_, key=lambda each: each.known is None or each.known.state is not FileState.COPYING)


def gone(found: Iterable[FoundFile], known: Mapping[str, FilePosition]) -> list[FilePosition]:
    """The files of which rows are missing, and which are not there any more."""
    there = {file.path for file in found}
    return [each for each in known.values() if each.state is FileState.COPYING and each.path not in there]


def too_bad(source: FileSource, position: FilePosition, *, ended: bool) -> bool:
    """Whether more rows are bad than the source allows, of all rows if their number is known, else of those read.

    Of fewer than 1,000 rows of a file that has more nothing is concluded.
    """
    rows = max(position.total, position.place.rows)
    if not ended and not position.total and rows < 1_000:
        return False
    return position.bad > source.max_bad * rows

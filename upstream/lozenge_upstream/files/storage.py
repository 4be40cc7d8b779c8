"""The files of a file source, where they are: on this machine, or on S3."""

import errno
import hashlib
import io
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast
from urllib.parse import quote

import pyarrow as pa
import pyarrow.fs as pafs

from lozenge.errors import ConfigError
from lozenge.file_sources.definition import Complete, FileSource
from lozenge.protocol.file_positions import FileId

_DIGEST_BYTES = 64 * 1024
_READ_BYTES = 1 << 20
_UNFINISHED = re.compile(r"(^|/)[._]|\.(tmp|part|inprogress|crdownload)$")
"""Names that writers give to files and folders of what is not complete, such as Spark's `_temporary`."""


class FoundFile(NamedTuple):
    """A file that is there; `path` is below the base of its source."""

    path: str
    id: FileId


class Storage:
    """Lists, opens and moves the files of one source. Raises OSError, and ConfigError for a place it does not know."""

    def __init__(self, source: FileSource) -> None:
        self._source = source
        self._files, self._base = _opened(source.base)
        self._pattern = re.compile(_regex(source.pattern))
        self._deep = "/" in source.pattern or "**" in source.pattern

    def complete(self, now_ns: int) -> list[FoundFile]:
        """The files that match and are complete, the oldest first; `now_ns` is Unix time."""
        selected = pafs.FileSelector(self._base, recursive=self._deep, allow_not_found=False)
        files = {
            info.path[len(self._base) :].lstrip("/"): FileId(info.size or 0, info.mtime_ns or 0)
            for info in self._files.get_file_info(selected)
            if info.type is pafs.FileType.File
        }
        found = [
            FoundFile(path, id)
            for path, id in files.items()
            if self._pattern.fullmatch(path) and not _UNFINISHED.search(path) and self._is_complete(path, files, now_ns)
        ]
        return sorted(found, key=lambda file: (file.id.modified_ns, file.path))

    def now(self, path: str) -> FileId | None:
        """Size and time of the file as it is now; None if it is gone."""
        info = self._files.get_file_info(self._place(path))
        return FileId(info.size or 0, info.mtime_ns or 0) if info.type is pafs.FileType.File else None

    @contextmanager
    def opened(self, path: str) -> Iterator[BinaryIO]:
        """The file, to be read from any byte on."""
        with self._files.open_input_file(self._place(path)) as file:
            yield cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, file), _READ_BYTES))

    def delete(self, path: str) -> None:
        """Deletes the file."""
        self._files.delete_file(self._place(path))

    def move(self, path: str, folder: str) -> None:
        """Moves the file to the same path below another folder, also on another disk; one of that path is replaced.

        If that disk is full, the file stays where it is.
        """
        files, base = _opened(folder)
        target = f"{base}/{path}"
        files.create_dir(target.rpartition("/")[0], recursive=True)
        if isinstance(files, pafs.LocalFileSystem) and isinstance(self._files, pafs.LocalFileSystem):
            _moved_here(Path(self._place(path)), Path(target))
        elif type(files) is type(self._files):
            self._files.move(self._place(path), target)
        else:
            pafs.copy_files(self._place(path), target, source_filesystem=self._files, destination_filesystem=files)
            self.delete(path)

    def _is_complete(self, path: str, files: dict[str, FileId], now_ns: int) -> bool:
        match self._source.complete:
            case Complete.RENAME:
                return True
            case Complete.QUIET:
                return now_ns - files[path].modified_ns >= self._source.quiet.total_seconds() * 1e9
        folder, slash, name = path.rpartition("/")
        marker = self._source.marker.replace("{file}", name)
        return folder + slash + marker in files

    def _place(self, path: str) -> str:
        return f"{self._base}/{path}"


def digest(file: BinaryIO, size: int) -> str:
    """Of the first and the last 64 KB of the first `size` bytes."""
    file.seek(0)
    found = hashlib.sha256(file.read(min(size, _DIGEST_BYTES)))
    if size > _DIGEST_BYTES:
        begin = max(_DIGEST_BYTES, size - _DIGEST_BYTES)
        file.seek(begin)
        found.update(file.read(size - begin))
    return found.hexdigest()[:32]


def _moved_here(file: Path, target: Path) -> None:
    """A file on another disk has its name once it is whole."""
    try:
        file.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        part = target.with_name(f"{target.name}.part")
        try:
            shutil.copy2(file, part)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        part.replace(target)
        file.unlink()


def _opened(place: str) -> tuple[pafs.FileSystem, str]:
    try:
        files, base = pafs.FileSystem.from_uri(place if "://" in place else f"file://{_absolute(place)}")
    except (pa.ArrowException, ValueError) as error:
        raise ConfigError(f"reading the path {place}: {error}", hint="it is a folder, or begins with s3://") from error
    return files, base.rstrip("/")


def _absolute(place: str) -> str:
    return quote(str(Path(place).absolute()))


def _regex(pattern: str) -> str:
    """A pattern of paths as a regular expression: `*` and `?` are within a name, `**/` is any number of folders."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    special = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(special.get(part, re.escape(part)) for part in parts)

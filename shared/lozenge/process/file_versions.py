"""The last good version of a file or folder that others replace while a process runs, as a private copy.

A new version is copied, validated as a whole, and only then in force. Users read the copy, so what was validated is
what they read, whatever happens to the source meanwhile. The version in force survives a restart.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import msgspec

from lozenge.process.atomic_write import replace
from lozenge.process.last_good import Bounds, Contents, refusals

SETTLED_SECONDS = 1.0
"""For how long a source must look the same before a change of it counts: who writes it may not be ready."""
KEPT = 4
"""How many versions stay on disk: queries that began with an older one still read it."""
_TRIES = 5
"""How often a first version is read again that changes meanwhile."""
_RECORD = "in_force.json"

Prepare = Callable[[Path, Path], Contents]
"""Reads a copy as a whole, and puts what users are to read at a second path. The digest is added."""
_Signature = tuple[tuple[str, int, int, int, int], ...]


class VersionFolder:
    """The versions of one source on disk. Which one is in force is recorded there, and so survives a restart."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._record = folder, folder / _RECORD

    def path(self, version: str) -> Path:
        """What users of this version read."""
        return self._folder / version

    def recorded(self) -> Contents | None:
        """What was found in the version that was in force, if that is there."""
        with suppress(OSError, msgspec.DecodeError):
            found = msgspec.json.decode(self._record.read_bytes(), type=Contents)
            return found if self.path(found.digest).exists() else None
        return None

    def record(self, found: Contents) -> None:
        """Records the version that is in force."""
        replace(self._record, msgspec.json.encode(found).decode())

    def delete_old(self, present: Contents) -> None:
        """Deletes all but the `present` version and the newest ones, which queries may read that began with them."""
        mine = (self.path(present.digest), self._record)
        others = [path for path in self._folder.iterdir() if path.name[0] != "." and path not in mine]
        for old in sorted(others, key=lambda path: path.stat().st_mtime_ns, reverse=True)[KEPT - 1 :]:
            _remove(old)


class FileVersions:
    """The versions of `source` in `folder`, of which one at most is in force. One thread uses it.

    `prepare` validates a version, `salt` is what else its digest depends on. `in_force` is what was found in the good
    version, None before the first. `refused` is why the source as it is now is not in force; empty if it is.
    """

    def __init__(
        self,
        source: Path,
        folder: Path,
        prepare: Prepare,
        bounds: Bounds,
        *,
        salt: str = "",
        settled_seconds: float = SETTLED_SECONDS,
    ) -> None:
        self.source, self._folder, self._versions = source, folder, VersionFolder(folder)
        self._prepare, self._bounds, self._salt = prepare, bounds, salt
        self._settled_seconds = settled_seconds
        self._examined: _Signature | str | None = None
        self._seen: _Signature | str | None = None
        self._seen_at = 0.0
        self.refused: tuple[str, ...] = ()
        self.in_force = self._versions.recorded()

    def path(self, digest: str) -> Path:
        """What users of this version read."""
        return self._versions.path(digest)

    def poll(self) -> None:
        """Looks at the source, and examines it if it has changed and has looked the same for some time.

        The first poll does not wait for that. Cheap without a change: it reads no contents.
        """
        begins = self._seen is None
        for _ in range(_TRIES):
            seen = _look(self.source)
            if seen == self._examined or not (self._settled(seen) or begins):
                return
            if isinstance(seen, str):
                self.refused, self._examined = (seen,), seen
                return
            try:
                examined = self._examine(seen)
            except OSError as error:
                self.refused, self._examined = (_unreadable(error),), None
                return
            if examined:
                self._examined = seen
            if examined or not begins:
                return
        self.refused = ("it changes while it is read; put a complete file in its place by renaming it",)

    def _settled(self, seen: "_Signature | str") -> bool:
        if seen != self._seen:
            self._seen, self._seen_at = seen, time.monotonic()
        return time.monotonic() - self._seen_at >= self._settled_seconds

    def _examine(self, signature: _Signature) -> bool:
        """Takes or refuses the source as it is; false if it has changed meanwhile."""
        self._folder.mkdir(parents=True, exist_ok=True)
        copy, ready = (self._folder / f".{uuid4().hex}.{what}" for what in ("copy", "ready"))
        try:
            digest = _copied(self.source, copy, self._salt)
            if _look(self.source) != signature:
                return False
            if self.in_force is not None and digest == self.in_force.digest:
                self.refused = ()
                return True
            found = msgspec.structs.replace(self._prepare(copy, ready), digest=digest)
            self.refused = refusals(found, self.in_force, self._bounds)
            if not self.refused:
                self._take(found, ready)
            return True
        finally:
            for leftover in (copy, ready):
                _remove(leftover)

    def _take(self, found: Contents, ready: Path) -> None:
        place = self.path(found.digest)
        if place.exists():  # it was in force before
            os.utime(place)
        else:
            ready.rename(place)
        self._versions.record(found)
        self.in_force = found
        self._versions.delete_old(found)


def data_files(path: Path) -> list[Path]:
    """The files that hold the data: `path` itself, or what is in the folder, but what a writer hides by its name."""
    if not path.is_dir():
        return [path]
    return [file for file in sorted(path.rglob("*")) if file.is_file() and not _is_hidden(file.relative_to(path))]


def _is_hidden(name: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in name.parts)


def _look(source: Path) -> "_Signature | str":
    """Changes with every write, and with every rename that puts another file in place; or why there is nothing."""
    try:
        source.stat()
        return tuple(_signatures(source))
    except OSError as error:
        return _unreadable(error)


def _signatures(source: Path) -> Iterator[tuple[str, int, int, int, int]]:
    for file in data_files(source):
        stat = file.stat()
        yield str(file.relative_to(source)), stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _unreadable(error: OSError) -> str:
    return f"it cannot be read: {error.strerror or error}"


def _copied(source: Path, copy: Path, salt: str) -> str:
    """Copies the data, and returns the digest of the copy; raises OSError."""
    digest = hashlib.sha256(salt.encode())
    if source.is_dir():
        copy.mkdir()
    for file in data_files(source):
        name = file.relative_to(source)
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
        with target.open("rb") as data:
            digest.update(f"\0{name}\0".encode() + hashlib.file_digest(data, "sha256").digest())
    return digest.hexdigest()[:12]


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)

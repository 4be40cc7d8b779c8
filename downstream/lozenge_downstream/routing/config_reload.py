"""Reloads the routing file when it changes. An invalid file never replaces a valid one, also not over a restart."""

import hashlib
import time
from pathlib import Path

from lozenge.errors import ConfigError
from lozenge.process.logging import logger
from lozenge_downstream.routing.config import Routing, parsed, routing

POLL_SECONDS = 1.0
VERSION_DIGITS = 12


def version_of(content: bytes) -> str:
    """The version of a routing file: a digest of its content."""
    return hashlib.sha256(content).hexdigest()[:VERSION_DIGITS]


class ConfigReload:
    """`current` is the newest valid routing and `version` that of its file ("" without a file).

    `read` is the newest version of the file, `problem` why it is not used ("" if it is).
    """

    def __init__(self, path: Path | None, last_valid: str | None = None) -> None:
        """Reads the file. If it is invalid, `last_valid` is used, the text of the version before the start.

        Raises ConfigError with all problems if there is none. Secrets of `last_valid` may be missing: messages are
        retried then.
        """
        self._path = path
        self._content = self._read()
        self.problem = ""
        self.version = self.read = version_of(self._content) if self._content is not None else ""
        try:
            self.current = routing(path) if self._content is None else self._parsed(self._content)
        except ConfigError as error:
            if last_valid is None:
                raise
            self.current = self._parsed(last_valid.encode(), secrets=False)
            self.version = version_of(last_valid.encode())
            self._reject(error)
        self._checked_at = time.monotonic()

    @property
    def file(self) -> str:
        """The path of the file; "" if there is none."""
        return str(self._path or "")

    @property
    def text(self) -> str:
        """The content of the file, if it is valid; a file that is not may contain a secret."""
        return self._content.decode("utf-8") if self._content is not None and not self.problem else ""

    def reload(self) -> bool:
        """Whether there is a new valid file, at most once a second; an invalid one is logged once."""
        if self._path is None or time.monotonic() < self._checked_at + POLL_SECONDS:
            return False
        self._checked_at = time.monotonic()
        content, before = self._read(), self._content
        if content == before and not self.problem:
            return False
        self._content = content
        self.read = version_of(content) if content is not None else ""
        try:
            self.current = routing(self._path) if content is None else self._parsed(content)
        except ConfigError as error:
            if content != before:  # the same file may become valid when a secret of it appears
                self._reject(error)
            return False
        self.problem, self.version = "", self.read
        logger().info("routing reloaded", file=str(self._path), version=self.version)
        return True

    def _reject(self, error: ConfigError) -> None:
        self.problem = str(error)
        logger().error(f"{error.message}\nthe previous routing stays active", hint=error.hint, version=self.version)

    def _parsed(self, content: bytes, *, secrets: bool = True) -> Routing:
        return parsed(content, f"reading the routing file {self._path}", secrets=secrets)

    def _read(self) -> bytes | None:
        # the content, not its time: files are small, and a mounted one may change without a new time
        try:
            return self._path.read_bytes() if self._path else None
        except OSError:
            return None

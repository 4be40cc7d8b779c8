"""Reloads the routing file when it changes. An invalid file never replaces a valid one."""

import time
from pathlib import Path

from lozenge.errors import ConfigError
from lozenge.process.logging import logger
from lozenge_downstream.routing.config import routing

POLL_SECONDS = 1.0


class ConfigReload:
    """`current` is the newest valid routing. The first must be valid: raises ConfigError with all problems."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.current = routing(path)
        self.problem = ""
        self._text = self._read()
        self._checked_at = time.monotonic()

    def reload(self) -> bool:
        """Whether there is a new valid file, at most once a second; an invalid one is logged once."""
        if self._path is None or time.monotonic() < self._checked_at + POLL_SECONDS:
            return False
        self._checked_at = time.monotonic()
        if (text := self._read()) == self._text:
            return False
        self._text = text
        try:
            self.current = routing(self._path)
        except ConfigError as error:
            self.problem = str(error)
            logger().error(f"{error.message}\nthe previous routing stays active", hint=error.hint)
            return False
        self.problem = ""
        logger().info("routing reloaded", file=str(self._path))
        return True

    def _read(self) -> bytes | None:
        # the content, not its time: files are small, and a mounted one may change without a new time
        try:
            return self._path.read_bytes() if self._path else None
        except OSError:
            return None

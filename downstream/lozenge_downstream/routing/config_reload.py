"""The routing file as it is now: read again when it changes; one that cannot be used never replaces one that can."""

import time
from pathlib import Path

from lozenge.errors import ConfigError
from lozenge.process.logging import logger
from lozenge_downstream.routing.config import routing

LOOK_SECONDS = 1.0


class ConfigReload:
    """`now` is the newest routing that was valid. The first one must be: raises ConfigError with all its problems."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.now = routing(path)
        self.problem = ""
        self._text = self._read()
        self._looked_at = time.monotonic()

    def look(self) -> bool:
        """Whether there is a new one, looked for now and then; one that cannot be used is told of once."""
        if self._path is None or time.monotonic() < self._looked_at + LOOK_SECONDS:
            return False
        self._looked_at = time.monotonic()
        if (text := self._read()) == self._text:
            return False
        self._text = text
        try:
            self.now = routing(self._path)
        except ConfigError as error:
            self.problem = str(error)
            logger().error(f"{error.message}\nthe one before stays in force", hint=error.hint)
            return False
        self.problem = ""
        logger().info("routing read again", file=str(self._path))
        return True

    def _read(self) -> bytes | None:
        # Whole, and no time stamps: files are small, and what is mounted may change without a new time.
        try:
            return self._path.read_bytes() if self._path else None
        except OSError:
            return None

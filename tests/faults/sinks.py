"""The sinks of a campaign, which are those of this project, and the server of the cache, which may be killed."""

import shutil
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from lozenge.sink_declarations.project import DECLARATION, SINKS
from lozenge.streams.project import Streams
from lozenge_deploy.demo.sinks.extras import SINKS as SINK_OF
from lozenge_deploy.demo.sinks.extras import Extra
from lozenge_deploy.demo.sinks.running_sinks import RunningSinks
from lozenge_deploy.local.redis_server import LocalRedis
from lozenge_deploy.releases.build import CHECKOUT
from lozenge_deploy.supervision.supervisor import Program
from tests.faults.plan import ARCHIVE

RARELY, OFTEN = 'commit_every = "1m"', 'commit_every = "2s"'
"""A kill is to come between two commits of a table, or within one."""


class SceneSinks:
    """The sinks that run; `server` is that of the cache, None where no cache runs."""

    def __init__(self, running: RunningSinks, server: LocalRedis | None) -> None:
        self.running, self.server = running, server
        self._lock = threading.Lock()

    def programs(self, like: Program) -> Iterator[Program]:
        """The program of each sink, on the platform of the program `like`."""
        for app in self.running.apps:
            command = [like.command[0], "-m", "lozenge.sink", app.removeprefix("sink-")]
            yield replace(
                like, name=app, command=command, environment=lambda n: {**like.environment(n), **self.running.variables}
            )

    def bounce(self, away: float = 0.0) -> None:
        """Kills the server of the cache, and starts it again after `away` seconds."""
        assert self.server is not None
        with self._lock:
            self.server.kill()
            time.sleep(away)
            self.server.start()


@contextmanager
def sinks_of(extras: Collection[Extra], folder: Path, streams: Streams) -> Iterator[SceneSinks]:
    """The sinks of a campaign in `folder`; the server of the cache runs until the end of the block."""
    folders = [_committing_often(SINK_OF[extra], folder / "sinks") for extra in extras if extra in SINK_OF]
    with ExitStack() as stack:
        server = stack.enter_context(LocalRedis(folder / "cache")) if Extra.CACHE in extras else None
        yield SceneSinks(RunningSinks(folders, streams, folder / ARCHIVE, server.url if server else ""), server)


def _committing_often(name: str, folder: Path) -> Path:
    own = Path(shutil.copytree(CHECKOUT / SINKS / name, folder / name))
    declared = (own / DECLARATION).read_text()
    (own / DECLARATION).write_text(declared.replace(RARELY, OFTEN))
    return own

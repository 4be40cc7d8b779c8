"""What was asked of the platform in a folder: a file there, so that it survives restarts.

The platform's process reads it and starts, stops or restarts what has changed.
"""

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from lozenge.errors import UsageError
from lozenge.process.atomic_write import replace as write

FILE = "requested.json"
PORT = 9092


@dataclass(frozen=True)
class Requested:
    """The broker's port on loopback, generated records per second, and the routing file or "".

    `normalisers` has the number of instances of each normaliser that was scaled; the others have one. `held` is the
    normaliser of which no instance runs, because its offsets are being reset; "" if there is none. `streams` are the
    names of those that were there at the last request: other ones make the platform read its streams again. What runs
    of file sources, sinks and tables is in control topics.
    """

    port: Annotated[int, Meta(ge=0, le=65_535)] = PORT
    feed: Annotated[float, Meta(ge=0)] = 0.0
    routing: str = ""
    normalisers: dict[str, Annotated[int, Meta(ge=1)]] = field(default_factory=dict)
    held: str = ""
    streams: list[str] = field(default_factory=list)

    def instances(self, app: str) -> int:
        """How many instances of a normaliser are requested."""
        return self.normalisers.get(app, 1)

    def programs_changed(self, before: "Requested") -> set[str]:
        """The programs that have to be stopped, and started again if they are still wanted."""
        changed = {"feed"} if self.feed != before.feed else set[str]()
        return changed | ({"downstream"} if self.routing != before.routing else set())

    def __str__(self) -> str:
        fed = f"{self.feed:g} generated records per second" if self.feed else "no generated records"
        return f"{fed}, {f'routing file {self.routing}' if self.routing else 'no routing file'}"


def requested(folder: Path) -> Requested:
    """What is requested of the platform in `folder`; the defaults where nothing was. Raises UsageError."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Requested)
    except FileNotFoundError:
        return Requested()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"reading {folder / FILE}: {error}", hint="remove it; then `lozenge up` with its options writes it again"
        ) from error


def request(folder: Path, **changes: Any) -> Requested:
    """Requests `changes`, fields of `Requested`, now and at every later start; raises as `requested` does."""
    wanted = replace(requested(folder), **changes)
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / FILE, json.dumps(asdict(wanted)))
    return wanted

"""Which release of a stream is requested, and which is in force: the records of one compacted topic.

An operator writes releases (`auth/r3`) and what is requested (`auth`). Upstream answers each request once
(`auth/report`): it has taken the release, or refuses it and names every problem. While nothing was ever requested, it
keeps the texts of the folder that it runs (`auth/folder`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import msgspec

from lozenge.contracts.record import Record
from lozenge.protocol.declared_releases import Moment, now
from lozenge.streams.folder import NAME
from lozenge.streams.release_files import digest_of, is_file_of_release

FOLDER = 0
"""The number of what no operator has released: the folder that upstream ran before the first deploy."""
Number = Annotated[int, msgspec.Meta(ge=FOLDER)]
_KEY = re.compile(rf"({NAME})(?:/(?:(r[1-9][0-9]*|folder)|(report)))?")


class ReleaseId(NamedTuple):
    """The name of a release, "r3" or "folder", and the digest of its files."""

    name: str
    digest: str


def release_name(number: int) -> str:
    """ "r3", or "folder"."""
    return f"r{number}" if number else "folder"


class StreamRelease(msgspec.Struct, frozen=True):
    """A release of a stream: the texts of its folder by path, and who made it, when and why."""

    stream: str
    number: Number
    files: dict[str, str]
    by: str = ""
    reason: str = ""
    at: Moment = msgspec.field(default_factory=now)

    @property
    def id(self) -> ReleaseId:
        """Its name and its digest."""
        return ReleaseId(release_name(self.number), digest_of(self.files))


class StreamDeployment(msgspec.Struct, frozen=True):
    """What is requested of a stream: a release, and the one that stays in force if it is refused.

    Each request has a new `revision`. `what` is "deploy" or "rollback".
    """

    stream: str
    revision: str
    release: Number
    fallback: Number = FOLDER
    what: str = "deploy"
    by: str = ""
    reason: str = ""
    at: Moment = msgspec.field(default_factory=now)


class StreamReport(msgspec.Struct, frozen=True):
    """What upstream answers to the request `revision`: its release is in force, unless there are problems."""

    stream: str
    revision: str
    release: Number
    problems: tuple[str, ...] = ()
    at: Moment = msgspec.field(default_factory=now)


StreamRow = StreamRelease | StreamDeployment | StreamReport


def record(topic: str, row: StreamRow) -> Record:
    """The row as a record of the topic."""
    return Record(topic, 0, key_of(row).encode(), msgspec.json.encode(row))


def key_of(row: StreamRow) -> str:
    """The key of its record."""
    match row:
        case StreamRelease():
            return f"{row.stream}/{row.id.name}"
        case StreamReport():
            return f"{row.stream}/report"
    return row.stream


def decode(key: bytes, value: bytes) -> StreamRow:
    """The row in a record; raises ValueError for any other record."""
    found = _KEY.fullmatch(key.decode())
    if found is None:
        raise ValueError(f"its key is {key!r}")
    kind: type[StreamRow] = StreamRelease if found[2] else StreamReport if found[3] else StreamDeployment
    row: StreamRow = msgspec.json.decode(value, type=kind)
    if key_of(row).encode() != key:
        raise ValueError(f"its key is {key!r}, and its value is of {key_of(row)}")
    if isinstance(row, StreamRelease) and (odd := [path for path in row.files if not is_file_of_release(path)]):
        raise ValueError(f"a release has no file {odd[0]!r}")
    return row


@dataclass(frozen=True)
class StreamState:
    """All that the topic says of one stream; `releases` by number, and the `folder` that ran before the first one."""

    stream: str
    deployment: StreamDeployment | None = None
    report: StreamReport | None = None
    releases: Mapping[int, StreamRelease] = field(default_factory=dict)
    folder: StreamRelease | None = None

    @property
    def answer(self) -> StreamReport | None:
        """What upstream has answered to the newest request; None while it has not."""
        if self.deployment is None or self.report is None or self.report.revision != self.deployment.revision:
            return None
        return self.report

    @property
    def is_proved(self) -> bool:
        """Whether the release that is to run has been in force: nothing is requested, or it was answered."""
        return self.deployment is None or self.answer is not None

    @property
    def to_run(self) -> int:
        """The number of the release that upstream is to run: the requested one, unless it was refused."""
        if self.deployment is None:
            return FOLDER
        refused = self.answer is not None and self.answer.problems
        return self.deployment.fallback if refused else self.deployment.release

    def kept(self, number: int) -> StreamRelease | None:
        """The texts of that number, if they are kept; of the folder only once something was requested.

        Before that upstream runs the folder as it is at each start.
        """
        if number == FOLDER:
            return None if self.deployment is None else self.folder
        return self.releases.get(number)

    @property
    def running(self) -> StreamRelease | None:
        """The texts that upstream is to run, also of a folder before the first request; None if they are not kept."""
        return self.folder if self.to_run == FOLDER else self.releases.get(self.to_run)

    def next_number(self) -> int:
        """The number of the next release."""
        return max(self.releases, default=0) + 1


def state_of(stream: str, rows: Mapping[str, StreamRow]) -> StreamState:
    """What the `rows`, by key, say of `stream`."""
    deployment, report, folder = (rows.get(key) for key in (stream, f"{stream}/report", f"{stream}/folder"))
    mine = [row for row in rows.values() if isinstance(row, StreamRelease) and row.stream == stream and row.number]
    return StreamState(
        stream,
        deployment if isinstance(deployment, StreamDeployment) else None,
        report if isinstance(report, StreamReport) else None,
        {row.number: row for row in sorted(mine, key=lambda row: row.number)},
        folder if isinstance(folder, StreamRelease) else None,
    )


def states_of(rows: Mapping[str, StreamRow]) -> list[StreamState]:
    """What the `rows`, by key, say of each stream, by name."""
    return [state_of(stream, rows) for stream in sorted({row.stream for row in rows.values()})]

"""The versions of routing files that notifiers of this store have read: which is used, and why another is not."""

from dataclasses import dataclass

import sqlalchemy as sql

from lozenge_downstream.store.sql_helpers import insert
from lozenge_downstream.store.tables import routing_versions


@dataclass(frozen=True, slots=True)
class RoutingVersion:
    """One version: `version` is a digest of the file's content, `problems` is why it is not used ("" if it is).

    `text` is the content of a version that is used. An invalid file may contain a secret, so its content is not kept.
    """

    version: str
    file: str
    text: str = ""
    problems: str = ""
    loaded_at: float = 0.0


class RoutingVersions:
    """The versions of one transaction."""

    def __init__(self, connection: sql.Connection, now: float) -> None:
        self._connection = connection
        self._now = now

    def record(self, read: RoutingVersion) -> bool:
        """Records a version that was read now; returns whether the latest one of that file differs from it."""
        latest = next(iter(self.latest(1, read.file)), None)
        if latest is not None and (latest.version, latest.problems) == (read.version, read.problems):
            return False
        row = {"version": read.version, "file": read.file, "text": read.text, "problems": read.problems or None}
        insert(self._connection, routing_versions, [row | {"loaded_at": self._now}])
        return True

    def used(self, file: str) -> RoutingVersion | None:
        """The latest version of a file that was valid when it was read."""
        query = sql.select(routing_versions).where(
            routing_versions.c.file == file, routing_versions.c.problems.is_(None)
        )
        row = self._connection.execute(query.order_by(routing_versions.c.row.desc()).limit(1)).one_or_none()
        return None if row is None else _version(row)

    def latest(self, limit: int, file: str | None = None) -> list[RoutingVersion]:
        """The latest versions, of one file or of all, the newest first."""
        query = sql.select(routing_versions).order_by(routing_versions.c.row.desc()).limit(limit)
        if file is not None:
            query = query.where(routing_versions.c.file == file)
        return [_version(row) for row in self._connection.execute(query)]


def _version(row: sql.Row[tuple[object, ...]]) -> RoutingVersion:
    return RoutingVersion(row.version, row.file, row.text, row.problems or "", row.loaded_at)

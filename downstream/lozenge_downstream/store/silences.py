"""Silences: which alerts are muted, by whom, why, and until when. They name detectors, not releases."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import msgspec
import sqlalchemy as sql

from lozenge_downstream.routing.matchers import Labels, Matcher, all_match, parse
from lozenge_downstream.store.sql_helpers import insert
from lozenge_downstream.store.tables import silences


@dataclass(frozen=True, slots=True)
class Silence:
    """Mutes the alerts that match all of `matchers` from `starts_at` until `ends_at`."""

    id: str
    matchers: tuple[Matcher, ...]
    author: str
    reason: str
    starts_at: float
    ends_at: float

    def mutes(self, labels: Labels) -> bool:
        """Whether it matches an alert with these labels."""
        return all_match(self.matchers, labels)

    def __str__(self) -> str:
        return f"silence {self.id} of {self.author}: {self.reason}"


_ALL = sql.select(silences).order_by(silences.c.created_at)
_NOW = sql.bindparam("now", type_=silences.c.ends_at.type)
_ACTIVE = _ALL.where(silences.c.starts_at <= _NOW, silences.c.ends_at > _NOW)


class Silences:
    """The silences of one transaction."""

    def __init__(self, connection: sql.Connection, now: float) -> None:
        self._connection = connection
        self._now = now

    def active(self) -> list[Silence]:
        """The silences that are active now, oldest first."""
        return list(_readable(self._connection.execute(_ACTIVE, {"now": self._now})))

    def all(self) -> list[Silence]:
        """The active, future and past silences that have not expired from the store."""
        return list(_readable(self._connection.execute(_ALL)))

    def add(
        self, matchers: Sequence[Matcher], author: str, reason: str, ends_at: float, starts_at: float | None = None
    ) -> Silence:
        """Creates a silence."""
        starts = self._now if starts_at is None else starts_at
        made = Silence(uuid4().hex[:8], tuple(matchers), author, reason, starts, ends_at)
        row = {
            "silence_id": made.id,
            "matchers": msgspec.json.encode([str(m) for m in matchers]).decode(),
            "author": author,
            "reason": reason,
            "starts_at": made.starts_at,
            "ends_at": ends_at,
            "created_at": self._now,
        }
        insert(self._connection, silences, [row])
        return made

    def expire(self, id: str) -> bool:
        """Ends a silence now; returns whether there was one that had not ended."""
        mine = silences.update().where(silences.c.silence_id == id, silences.c.ends_at > self._now)
        return bool(self._connection.execute(mine.values(ends_at=self._now)).rowcount)


def _readable(rows: Iterable[Any]) -> Iterator[Silence]:
    """Without those whose matchers cannot be parsed: their alerts are better notified than lost."""
    for r in rows:
        try:
            matchers = tuple(parse(text) for text in msgspec.json.decode(r.matchers))
        except ValueError:
            continue
        yield Silence(r.silence_id, matchers, r.author, r.reason, r.starts_at, r.ends_at)

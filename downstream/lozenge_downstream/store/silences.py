"""Silences: who wants not to be told of what, why, and until when. They know detectors by name, not by release."""

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
    """Alerts that match all of `matchers` are not told from `starts_at` until `ends_at`."""

    id: str
    matchers: tuple[Matcher, ...]
    author: str
    reason: str
    starts_at: float
    ends_at: float

    def mutes(self, labels: Labels) -> bool:
        """Whether an alert with these labels is meant."""
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
        """Those that hold now, oldest first."""
        return list(_readable(self._connection.execute(_ACTIVE, {"now": self._now})))

    def all(self) -> list[Silence]:
        """Those that hold, will hold, or held and are not forgotten."""
        return list(_readable(self._connection.execute(_ALL)))

    def add(
        self, matchers: Sequence[Matcher], author: str, reason: str, ends_at: float, starts_at: float | None = None
    ) -> Silence:
        """A new one."""
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
        """Ends one now; whether there was one that had not ended."""
        mine = silences.update().where(silences.c.silence_id == id, silences.c.ends_at > self._now)
        return bool(self._connection.execute(mine.values(ends_at=self._now)).rowcount)


def _readable(rows: Iterable[Any]) -> Iterator[Silence]:
    """Without those that an older release wrote and this one cannot read: better told than lost."""
    for r in rows:
        try:
            matchers = tuple(parse(text) for text in msgspec.json.decode(r.matchers))
        except ValueError:
            continue
        yield Silence(r.silence_id, matchers, r.author, r.reason, r.starts_at, r.ends_at)

"""The raw records of a run: each is numbered, written in its form and counted; cases are recorded."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from itertools import cycle
from typing import NamedTuple
from zlib import crc32

from lozenge_deploy.demo.feed.formats import RAW_LOGIN, Authorisation, Form, Login, login_json
from lozenge_deploy.demo.feed.malformed_records import malform, reasons
from lozenge_deploy.demo.feed.schedule import moment


class Raw(NamedTuple):
    """One record of a raw topic; `topic` has no prefix."""

    key: bytes
    value: bytes
    event_time: datetime
    topic: str


@dataclass(frozen=True, slots=True)
class InjectedCase:
    """A case that a detector should find; the last of `txn_ids`, of the card `pan` at time `at`, completes it."""

    kind: str
    txn_ids: tuple[str, ...]
    pan: str
    at: datetime


class WrittenRecords:
    """Writes the records of one run, and counts them: `sent` authorisations, `logins`, and the completed `cases`.

    `malformed` counts by reason. `rows` are authorisations of files, which are not among those sent.
    """

    def __init__(self, form: Form, seed: int, start: datetime) -> None:
        self.cases: list[InjectedCase] = []
        self.malformed: Counter[str] = Counter()
        self.sent = self.logins = self.rows = 0
        self._form = form
        self._reasons = cycle(reasons(form))
        # Runs into one topic must not share transaction ids: 20 bits name the run, 28 count its records.
        self._number = crc32(f"{seed} {start.isoformat()}".encode()) % (1 << 20) << 28

    def next_number(self) -> int:
        """The number of the next authorisation or login."""
        self._number += 1
        return self._number

    def valid(self, auth: Authorisation) -> Raw:
        """The record of `auth`."""
        self.sent += 1
        return self._written(auth)

    def row(self, auth: Authorisation) -> Raw:
        """The record of `auth`, which comes in a file."""
        self.rows += 1
        return self._written(auth)

    def login(self, login: Login) -> Raw:
        """The record of `login`."""
        self.logins += 1
        when = moment(login.at)
        return Raw(login.card.account.encode(), login_json(login, when), when, RAW_LOGIN)

    def completing(self, kind: str, auth: Authorisation, txn_ids: tuple[str, ...] = ()) -> Raw:
        """The record of `auth`, which completes a case of `kind`; `txn_ids` are all of the case, by default its own."""
        raw = self.valid(auth)
        self.cases.append(InjectedCase(kind, txn_ids or (auth.txn_id,), auth.card.pan, raw.event_time))
        return raw

    def malformed_of(self, auth: Authorisation) -> Raw:
        """The record of `auth` made malformed, for each reason in turn."""
        raw, reason = self.valid(auth), next(self._reasons)
        self.malformed[reason] += 1
        return raw._replace(value=malform(reason, raw.value, raw.event_time, self._form))

    def _written(self, auth: Authorisation) -> Raw:
        when = moment(auth.at)
        return Raw(auth.card.pan.encode(), self._form.write(auth, when), when, self._form.topic)

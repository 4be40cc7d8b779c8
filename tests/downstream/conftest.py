"""Alerts, stores and a desk for the notifier's tests."""

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest
import sqlalchemy as sql

from lozenge.contracts import ids
from lozenge.contracts.avro import Codec
from lozenge.contracts.topics import Topics
from lozenge_downstream.model import ReceivedAlert, ReceivedRecord
from lozenge_downstream.pipeline.pipeline import Pipeline
from lozenge_downstream.routing.config import Routing
from lozenge_downstream.store import Store, tables
from tests.postgres import database, server

TOPICS = Topics()
ALERT = Codec.of("alert")

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

MakeRecord = Callable[..., ReceivedRecord]


def alert_fields(number: int, detector: str) -> dict[str, Any]:
    """An alert about card 7 as Avro takes it; `number` makes its id."""
    return {
        "alert_id": ids.alert_id(detector, "card", "card-7", str(number)),
        "detector": detector,
        "release": "r1",
        "settings_digest": "d1",
        "entity": {"type": "card", "id": "card-7"},
        "severity": "high",
        "score": 0.9,
        "title": "Large amount",
        "reason": "300.00 EUR is above 220.00",
        "evidence": {"event_ids": ["e1"], "values": {"limit": "220.00", "amount": "300.00"}},
        "event_time": NOON,
        "detected_at": NOON + timedelta(seconds=1),
        "labels": {},
    }


def alert_record(
    number: int = 0, *, detector: str = "large_amount", topic: str | None = None, **fields: Any
) -> ReceivedRecord:
    """The record of one alert; `fields` replace fields of the alert."""
    alert = alert_fields(number, detector) | fields
    return ReceivedRecord(topic or TOPICS.detector(detector).alerts, 2, number, b"card-7", ALERT.encode(alert), [])


@pytest.fixture
def record() -> MakeRecord:
    """Builds the record of one alert."""
    return alert_record


class Desk:
    """A store and the stages before it, on a clock that the test moves."""

    def __init__(self, url: str, topics: Topics = TOPICS) -> None:
        self.now = NOON.timestamp() + 2
        self.store = Store(url, clock=lambda: self.now)
        self.pipeline = Pipeline(Routing(), topics)

    def routing(self, **file: Any) -> None:
        """The routing file from now on; names every channel that a route mentions."""
        self.pipeline.routing = Routing.model_validate(file)

    def take(self, *records: ReceivedRecord) -> list[ReceivedAlert]:
        """Takes records in, in one transaction."""
        with self.store.transaction(exclusive=True) as t:
            return self.pipeline.receive(self.pipeline.decode(records), t)

    def later(self, seconds: float) -> int:
        """Moves the clock and looks at what is due; how many cases that were."""
        self.now += seconds
        with self.store.transaction(exclusive=True) as t:
            return self.pipeline.evaluate_due(t, 1000)

    def notifications(self) -> list[dict[str, Any]]:
        """The fields of every notification, oldest first."""
        with self.store.reading() as t:
            rows = t._connection.execute(sql.select(tables.outbox.c.body).order_by(tables.outbox.c.row)).scalars()
            return [msgspec.json.decode(body)["data"] for body in rows if body]

    def deliveries(self) -> list[tuple[str, str]]:
        """Channel and state of each delivery."""
        with self.store.reading() as t:
            columns = (tables.deliveries.c.channel, tables.deliveries.c.state)
            return [(row[0], row[1]) for row in t._connection.execute(sql.select(*columns))]


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of a store that does not exist yet."""
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A PostgreSQL server."""
    with server(tmp_path_factory.mktemp("postgres") / "data") as running:
        yield running


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store, which is copied: its migrations take longer."""
    file = tmp_path_factory.mktemp("empty") / "store.db"
    Store(f"sqlite:///{file}").close()
    return file


@pytest.fixture(scope="session")
def empty_database(postgres: Any) -> str:
    """The name of the same in PostgreSQL."""
    Store(database(postgres, "empty")).close()
    return "empty"


@pytest.fixture(params=["sqlite", "postgresql"])
def desk(request: pytest.FixtureRequest, tmp_path: Path, url: str) -> Iterator[Desk]:
    """An empty store of each kind with the stages before it."""
    if request.param == "postgresql":
        template = request.getfixturevalue("empty_database")
        url = database(request.getfixturevalue("postgres"), uuid4().hex, template)
    else:
        shutil.copy(request.getfixturevalue("empty_file"), tmp_path / "store.db")
    desk = Desk(url)
    yield desk
    desk.store.close()


@pytest.fixture
def store(desk: Desk) -> Store:
    """The desk's store."""
    return desk.store

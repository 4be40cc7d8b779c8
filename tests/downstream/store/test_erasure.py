"""An erased entity is in no byte of the store; what others need of the same rows stays, and duplicates are known."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

from lozenge.contracts import ids
from lozenge.contracts.avro import Codec
from lozenge.protocol.data_subject import ERASED, DataSubject
from lozenge_downstream.api import feedback_records
from lozenge_downstream.model import ReceivedRecord, Verdict
from lozenge_downstream.store.deliveries import Attempt
from lozenge_downstream.store.tables import SENT, metadata
from tests.downstream.conftest import TOPICS, Desk

MakeRecord = Callable[..., ReceivedRecord]
CARD, OTHER = "card_4f1c09e27ab35d68", "card_9b3e77d01c64aa52"
SUBJECT = DataSubject("card", CARD)


def about(record: MakeRecord, number: int, card: str, type: str = "card", **fields: Any) -> ReceivedRecord:
    id = ids.alert_id("large_amount", type, card, str(number))
    made = record(number, entity={"type": type, "id": card}, alert_id=id, **fields)
    return ReceivedRecord(made.topic, made.partition, made.offset, card.encode(), made.value, made.headers)


def everything(desk: Desk) -> Iterator[tuple[str, dict[str, Any]]]:
    with desk.store.reading() as t:
        for name, table in metadata.tables.items():
            for row in t._connection.execute(sql.select(table)):
                yield name, dict(row._mapping)


def settle(desk: Desk) -> None:
    """All records are published, and all messages sent."""
    with desk.store.transaction() as t:
        for row in t.outbox.pending(100):
            t.outbox.published((row.topic, row.partition), row.seq)
    while True:
        with desk.store.transaction() as t:
            if not (due := t.deliveries.due("ops", 100)):
                return
            t.deliveries.settle([Attempt(each, SENT, desk.now, f"after {CARD}") for each in due])


def erase(desk: Desk) -> Any:
    with desk.store.transaction(exclusive=True) as t:
        done = t.erase(SUBJECT)
    desk.store.reclaim()
    return done


@pytest.fixture
def busy(desk: Desk, record: MakeRecord) -> Desk:
    """A store in which a card is everywhere, next to others."""
    desk.routing(route={"channels": ["ops"], "group_by": ["entity"]})
    accepted = desk.take(
        about(record, 0, CARD),
        about(record, 1, CARD, labels={"bin": "1"}),
        about(record, 2, OTHER),
        about(record, 3, "merchant_77", "merchant", reason=f"{CARD} and {OTHER} paid there"),
    )
    desk.later(60)
    codec = Codec.of("feedback")
    with desk.store.transaction(exclusive=True) as t:
        for received in accepted:
            assert received.alert is not None
            feedback_records.record(received.alert, Verdict.CONFIRMED, "ann", f"see {CARD}", codec, TOPICS, t)
            feedback_records.snooze(received.alert, "ann", "later", 3600.0, codec, TOPICS, t)
    return desk


def test_a_card_that_is_everywhere_is_in_no_byte_and_others_are_as_they_were(busy: Desk, tmp_path: Path) -> None:
    settle(busy)
    before = [(name, row) for name, row in everything(busy) if CARD not in repr(row)]
    named = {name for name, row in everything(busy) if CARD in repr(row)}
    assert named >= {"received_alerts", "cases", "outbox", "silences", "feedback", "failed_attempts", "deliveries"}

    done = erase(busy)
    after = list(everything(busy))
    assert done.on_their_way == 0
    assert (done.removed["alerts"], done.removed["cases"], done.removed["silences"]) == (2, 1, 1)
    assert CARD not in repr(after)
    others = [row for name, row in before if name in ("received_alerts", "cases", "silences")]
    assert [row for row in others if row not in [each for _, each in after]] == []
    (merchant,) = [row for name, row in after if name == "received_alerts" and "merchant_77" in repr(row)]
    assert f"{ERASED} and {OTHER} paid there" in merchant["body"]
    assert CARD.encode() not in b"".join(file.read_bytes() for file in tmp_path.glob("store.db*"))
    again = erase(busy)
    assert not any(again.removed.values())


def test_an_alert_that_is_read_again_is_a_duplicate_still(busy: Desk, record: MakeRecord) -> None:
    settle(busy)
    erase(busy)
    (again,) = busy.take(about(record, 0, CARD))
    assert again.outcome.value == "duplicate"
    busy.later(7200)
    assert CARD not in repr(list(everything(busy)))


def test_what_is_on_its_way_is_left_to_a_second_run(busy: Desk) -> None:
    first = erase(busy)
    assert first.on_their_way > 0
    with busy.store.reading() as t:
        numbers = [(row.topic, row.partition, row.seq) for row in t.outbox.pending(100)]
    assert len({*numbers}) == len(numbers)
    settle(busy)
    second = erase(busy)
    assert second.on_their_way == 0
    assert CARD not in repr(list(everything(busy)))


def test_a_message_that_others_wait_for_is_sent_first(desk: Desk, record: MakeRecord) -> None:
    desk.routing(route={"channels": ["ops"], "group_by": ["detector"]})
    desk.take(about(record, 0, CARD), about(record, 1, OTHER))
    desk.later(60)
    with desk.store.transaction() as t:
        for row in t.outbox.pending(100):
            t.outbox.published((row.topic, row.partition), row.seq)
    assert erase(desk).on_their_way == 1
    with desk.store.reading() as t:
        assert len(t.deliveries.due("ops", 10)) == 1
        assert len(t.case_queries.open([], 10)) == 1, "the case is of the other card too"
    settle(desk)
    assert erase(desk).on_their_way == 0
    assert CARD not in repr(list(everything(desk)))
    assert OTHER in repr(list(everything(desk)))

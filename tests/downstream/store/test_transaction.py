"""All of a transaction is stored, or nothing; what is stored survives the process."""

from collections.abc import Callable
from contextlib import suppress

from lozenge_downstream.model import ReceivedRecord
from tests.downstream.conftest import Desk

MakeRecord = Callable[..., ReceivedRecord]


def test_seq_has_no_gap_after_a_rollback(desk: Desk, record: MakeRecord) -> None:
    desk.take(record(0))
    with suppress(ZeroDivisionError), desk.store.transaction(exclusive=True) as t:
        desk.pipeline.receive(desk.pipeline.decode([record(1)]), t)
        raise ZeroDivisionError
    desk.take(record(2))
    assert [n["seq"] for n in desk.notifications()] == [0, 1]


def test_received_alerts_survive_the_process(url: str, record: MakeRecord) -> None:
    for outcome in ("accepted", "duplicate"):
        desk = Desk(url)
        (received,) = desk.take(record(0))
        assert received.outcome == outcome
        desk.store.close()

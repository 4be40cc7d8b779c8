"""Only the notifier that knows a position moves it; recording what was published reads little."""

import sqlite3
from pathlib import Path

import pytest

from lozenge.contracts.topics import Topics
from lozenge.errors import Fenced
from lozenge_downstream.store import Store
from tests.downstream.store.probes import executed

TOPICS = Topics()
PARTITION = TOPICS.detector("large_amount").alerts, 2


def test_a_position_is_moved_only_by_the_notifier_that_knows_it(store: Store) -> None:
    with store.transaction() as t:
        t.positions.move(PARTITION, None, 5)
        t.positions.move(PARTITION, 5, 9)
    for known in (None, 5, 10):
        with pytest.raises(Fenced, match="another notifier has moved the position"), store.transaction() as t:
            t.positions.move(PARTITION, known, 11)
    with store.reading() as t:
        assert t.positions.of(PARTITION) == 9


def test_the_positions_of_a_topic_that_was_created_again_are_those_of_the_former_one(store: Store) -> None:
    other = TOPICS.detector("card_velocity").alerts, 2
    with store.transaction() as t:
        for topic, _ in (PARTITION, other):
            assert not t.positions.are_of_another(topic, "first"), "it is read for the first time"
        t.positions.move(PARTITION, None, 5)
        t.positions.move(other, None, 7)
    with store.transaction() as t:
        assert not t.positions.are_of_another(PARTITION[0], "first")
        assert t.positions.of(PARTITION) == 5
        assert t.positions.are_of_another(PARTITION[0], "second")
    with store.transaction() as t:
        assert not t.positions.are_of_another(PARTITION[0], "second")
        assert (t.positions.of(PARTITION), t.positions.of(other)) == (None, 7)


def test_recording_what_was_published_reads_nothing_that_was_recorded_before(tmp_path: Path) -> None:
    """Else each notification would cost more than the last."""
    file = tmp_path / "store.db"
    update = executed(f"sqlite:///{file}", lambda t: t.outbox.published(PARTITION, 0), "UPDATE")
    with sqlite3.connect(file) as connection:
        ((*_, plan),) = connection.execute(f"EXPLAIN QUERY PLAN {update}", [0, *PARTITION, 0])
    connection.close()
    assert "USING INDEX outbox_pending_seq (topic=? AND partition=? AND seq<?)" in plan

"""A fold reads its state while another job of it continues to write."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
from confluent_kafka import Producer

from lozenge import Settings
from lozenge.contracts.record import Record
from lozenge.contracts.topics import Topic
from lozenge.job.operators.fold_operator import FoldOperator
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from tests.fold_batches import batch
from tests.integration.job.sparkless import COUNTING

pytestmark = pytest.mark.integration
TOPIC, PARTITIONS = "restored-state", range(4)


def a_count() -> FoldOperator:
    return FoldOperator(COUNTING, Settings(), "card_id", TOPIC, PARTITIONS)


def counted(operator: FoldOperator, number: int) -> set[int]:
    """To what the next event of every card counts."""
    events = batch([{"card_id": f"card_{card}", "event_id": f"{number}-{card}"} for card in range(12)])
    drafts = operator.process(events).alerts
    assert len(drafts) == 12
    return {int(draft.alert.reason.split()[-1]) for draft in drafts}


def write(producer: Producer, records: Iterable[Record]) -> None:
    """In a transaction that stays open, and is with the broker."""
    producer.begin_transaction()
    for record in records:
        producer.produce(record.topic, record.value, record.key, record.partition)
    assert producer.flush(30) == 0


def test_a_state_that_is_restored_has_what_an_open_transaction_is_about_to_commit(kafka: KafkaSettings) -> None:
    ensure_topics(kafka, [Topic(TOPIC, len(PARTITIONS))])
    producer = Producer(kafka.client(transactional_id=TOPIC))
    producer.init_transactions()
    live, standby = a_count(), a_count()
    assert counted(live, 1) == {1}
    write(producer, live.state_changes())
    producer.commit_transaction()
    assert counted(live, 2) == {2}
    write(producer, live.state_changes())
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(standby.restore, kafka)
        # its offsets may be committed already, while the broker has not ended it in every partition of the state
        wait([reading], timeout=1)
        producer.commit_transaction()
        assert reading.result(60) == 12
    assert counted(standby, 3) == {3}

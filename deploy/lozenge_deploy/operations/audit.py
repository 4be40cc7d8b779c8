"""The audit log: what a person did with protected data. An action whose record the broker does not have is not done."""

import getpass
import socket
from datetime import UTC, datetime

import msgspec
from confluent_kafka import KafkaException, Producer

from lozenge.contracts.headers import iso
from lozenge.errors import BrokerUnavailable
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics

DEADLINE_SECONDS = 10.0
CARD_NUMBERS_SHOWN = "card numbers shown"


class AuditRecord(msgspec.Struct, frozen=True):
    """Who did what with which data, and when (ISO 8601, UTC). `by` is the user of the machine `host`."""

    at: str
    action: str
    target: str
    by: str
    host: str


def record(kafka: KafkaSettings, action: str, target: str) -> AuditRecord:
    """Writes that this user does `action` with `target`; raises BrokerUnavailable unless the broker has it."""
    made = AuditRecord(iso(datetime.now(UTC)), action, target, getpass.getuser(), socket.gethostname())
    topic, failures = kafka.topics.control.audit, list[str]()
    ensure_topics(kafka, [topic])
    producer = Producer(kafka.client(acks="all", message_timeout_ms=int(DEADLINE_SECONDS * 1000)))
    try:
        producer.produce(
            topic.name,
            msgspec.json.encode(made),
            made.by.encode(),
            0,
            on_delivery=lambda error, _: failures.append(str(error)) if error else None,
        )
        left = producer.flush(DEADLINE_SECONDS)
    except (BufferError, KafkaException) as error:
        left, failures = 1, [str(error)]
    if left or failures:
        problem = failures[0] if failures else "no acknowledgement"
        raise BrokerUnavailable(
            f"recording in {topic.name}: {action}: {problem}",
            hint=f"check the broker at {kafka.bootstrap}; without its record it is not done",
        )
    return made

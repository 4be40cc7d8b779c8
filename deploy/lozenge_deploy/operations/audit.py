"""The audit log: what a person did with protected data. An action whose record the broker does not have is not done."""

import socket
from datetime import UTC, datetime

import msgspec

from lozenge.contracts.headers import iso
from lozenge.contracts.record import Record
from lozenge.errors import BrokerUnavailable
from lozenge.kafka.direct_write import write_directly
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.process.user_name import user_name

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
    made = AuditRecord(iso(datetime.now(UTC)), action, target, user_name(), socket.gethostname())
    topic = kafka.topics.control.audit
    ensure_topics(kafka, [topic])
    if problem := write_directly(kafka, [Record(topic.name, 0, made.by.encode(), msgspec.json.encode(made))]):
        raise BrokerUnavailable(
            f"recording in {topic.name}: {action}: {problem}",
            hint=f"check the broker at {kafka.bootstrap}; without its record it is not done",
        )
    return made

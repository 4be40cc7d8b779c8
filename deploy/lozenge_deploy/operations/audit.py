"""The audit log: what a person did with protected data, and to reference lists.

An action whose record the broker does not have is not done.
"""

import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

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
    """Who did what with which data, and when (ISO 8601, UTC). `by` is the user of the machine `host`.

    `detail` is the data before and after a change.
    """

    at: str
    action: str
    target: str
    by: str
    host: str
    detail: Mapping[str, Any] = {}


def record(kafka: KafkaSettings, action: str, target: str, detail: Mapping[str, Any] = {}) -> AuditRecord:
    """Writes that this user does `action` with `target`; raises BrokerUnavailable unless the broker has it."""
    made, topic = _made(action, target, detail), kafka.topics.control.audit
    ensure_topics(kafka, [topic])
    if problem := write_directly(kafka, [_record(kafka, made)]):
        raise BrokerUnavailable(
            f"recording in {topic.name}: {action}: {problem}",
            hint=f"check the broker at {kafka.bootstrap}; without its record it is not done",
        )
    return made


def kafka_record(kafka: KafkaSettings, action: str, target: str, detail: Mapping[str, Any]) -> Record:
    """What the transaction that performs `action` writes into the audit log, which must exist."""
    return _record(kafka, _made(action, target, detail))


def _made(action: str, target: str, detail: Mapping[str, Any]) -> AuditRecord:
    return AuditRecord(iso(datetime.now(UTC)), action, target, user_name(), socket.gethostname(), detail)


def _record(kafka: KafkaSettings, made: AuditRecord) -> Record:
    return Record(kafka.topics.control.audit.name, 0, made.by.encode(), msgspec.json.encode(made))

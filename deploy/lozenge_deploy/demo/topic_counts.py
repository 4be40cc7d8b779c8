"""The contents of the topics, counted by a Kafka client that shares no code with the stages (kafka-python).

It reads committed records only, from the first one to the end at the time of the call.
"""

import json
import urllib.request
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from lozenge.contracts.avro import Codec
from lozenge.contracts.dead_letters import MESSAGE, SOURCE_OFFSET, SOURCE_PARTITION, SOURCE_TOPIC
from lozenge.kafka.schema_registry import settle_ids
from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.demo.committed_records import each_committed, header
from lozenge_deploy.demo.feed.formats import LOGINS, RAW_JSON, RAW_LOGIN, STREAM


@dataclass(frozen=True)
class CountedAlert:
    """What the reconciliation needs of an alert."""

    id: str
    evidence: frozenset[str]


@dataclass(frozen=True)
class LoginCounts:
    """The stream of logins: raw records, events, their distinct ids, and dead letters."""

    raw: int
    events: int
    event_ids: int
    rejected: int


@dataclass(frozen=True)
class TopicCounts:
    """Everything that a reconciliation compares.

    - `events`, `copies` and `merged` count records; `event_ids` and the second numbers count their distinct ids.
    - `merged` are the topics that hold events of other streams too.
    - `logins` is None where no detector reads them.
    - `rejected` counts each raw record once, `rejected_again` the other dead letters of upstream.
    - `processed` is the committed offsets of a detector and the end of its input.
    - `late` is how far each watched event was behind the newest event of its partition, in event time.
    """

    raw: int = 0
    events: int = 0
    event_ids: int = 0
    logins: LoginCounts | None = None
    late: dict[str, timedelta] = field(default_factory=dict)
    copies: dict[str, tuple[int, int]] = field(default_factory=dict)
    merged: dict[str, tuple[int, int]] = field(default_factory=dict)
    rejected: Counter[str] = field(default_factory=Counter)
    rejected_again: int = 0
    processed: dict[str, tuple[int, int]] = field(default_factory=dict)
    alerts: dict[str, list[CountedAlert]] = field(default_factory=dict)
    notified: list[str] = field(default_factory=list)
    notification_ids: set[str] = field(default_factory=set)
    seq_gaps: int = 0
    dead_letters: dict[str, int] = field(default_factory=dict)
    webhooks: dict[str, int] = field(default_factory=dict)

    @property
    def repeats(self) -> int:
        """How many records of upstream repeat an earlier one."""
        topics = [(self.events, self.event_ids), *self.copies.values(), *self.merged.values()]
        return self.rejected_again + sum(records - ids for records, ids in topics)


def count(
    kafka: KafkaSettings,
    *,
    inputs: Mapping[str, str],
    copies: Mapping[str, str],
    merged: Mapping[str, str],
    logins_by: str = "",
    webhook_url: str,
    watched: Collection[str] = (),
) -> TopicCounts:
    """Counts all topics. `inputs` maps each detector to the topic that it reads; `watched` are event ids.

    `copies` are the topics that hold events of payments again, by their key, and `merged` those with events of other
    streams too. `logins_by` is the normaliser of logins, if there is one.

    Raises BrokerUnavailable if a topic does not return the records up to its end.
    """
    settle_ids(kafka, ())
    late: dict[str, timedelta] = {}
    received = webhooks(webhook_url)
    raw = each_committed(kafka, kafka.topics.prefixed(RAW_JSON), lambda record: None)
    events, event_ids = _events(kafka, kafka.topics.events(STREAM), watched, late)
    rejected, rejected_again = _rejected(kafka)
    apps = (*inputs, "downstream")
    dead_letters = {app: each_committed(kafka, kafka.topics.dead_letters(app), lambda record: None) for app in apps}
    alerts = {detector: _alerts(kafka, detector) for detector in inputs}
    notified, notification_ids, seq_gaps = _notifications(kafka)
    return TopicCounts(
        raw=raw,
        events=events,
        event_ids=event_ids,
        logins=_logins(kafka, logins_by) if logins_by else None,
        late=late,
        copies={key: _events(kafka, topic, (), {}) for key, topic in copies.items()},
        merged={key: _events(kafka, topic, (), {}) for key, topic in merged.items()},
        rejected=rejected,
        rejected_again=rejected_again,
        processed={detector: _processed(kafka, detector, topic) for detector, topic in inputs.items()},
        alerts=alerts,
        notified=notified,
        notification_ids=notification_ids,
        seq_gaps=seq_gaps,
        dead_letters=dead_letters,
        webhooks=received,
    )


def webhooks(url: str) -> dict[str, int]:
    """The counts of the receiver at `url`: received, distinct, repeats, invalid."""
    with urllib.request.urlopen(f"{url.rstrip('/')}/count", timeout=10) as answer:
        found: dict[str, int] = json.load(answer)
    return found


def _events(kafka: KafkaSettings, topic: str, watched: Collection[str], late: dict[str, timedelta]) -> tuple[int, int]:
    """Records, and distinct event ids among them (16 bytes each: there may be millions)."""
    ids: set[bytes] = set()
    newest: dict[int, datetime] = {}

    def take(record: Any) -> None:
        event_id, time = header(record, "ce_id"), datetime.fromisoformat(header(record, "ce_time"))
        ids.add(bytes.fromhex(event_id.replace("-", "")))
        newest[record.partition] = max(time, newest.get(record.partition, time))
        if event_id in watched:
            late.setdefault(event_id, newest[record.partition] - time)

    return each_committed(kafka, topic, take), len(ids)


def _logins(kafka: KafkaSettings, app: str) -> LoginCounts:
    raw = each_committed(kafka, kafka.topics.prefixed(RAW_LOGIN), lambda record: None)
    rejected = each_committed(kafka, kafka.topics.dead_letters(app), lambda record: None)
    return LoginCounts(raw, *_events(kafka, kafka.topics.events(LOGINS), (), {}), rejected)


def _rejected(kafka: KafkaSettings) -> tuple[Counter[str], int]:
    """The reasons of the rejected raw records, and how many dead letters repeat one."""
    reasons: dict[tuple[str, ...], str] = {}

    def take(record: Any) -> None:
        raw = tuple(header(record, name) for name in (SOURCE_TOPIC, SOURCE_PARTITION, SOURCE_OFFSET))
        reasons[raw] = _reason(record)

    dead_letters = each_committed(kafka, kafka.topics.dead_letters("upstream"), take)
    return Counter(reasons.values()), dead_letters - len(reasons)


def _alerts(kafka: KafkaSettings, detector: str) -> list[CountedAlert]:
    codec, found = Codec.of("alert"), []

    def take(record: Any) -> None:
        alert = codec.decode(record.value)
        found.append(CountedAlert(alert["alert_id"], frozenset(alert["evidence"]["event_ids"])))

    each_committed(kafka, kafka.topics.detector(detector).alerts, take)
    return found


def _notifications(kafka: KafkaSettings) -> tuple[list[str], set[str], int]:
    """The ids of all notified alerts, the ids of their notifications, and the gaps in `seq`."""
    codec = Codec.of("notification")
    alert_ids: list[str] = []
    ids: set[str] = set()
    expected: Counter[int] = Counter()
    gaps = 0

    def take(record: Any) -> None:
        nonlocal gaps
        notification = codec.decode(record.value)
        ids.add(notification["notification_id"])
        alert_ids.extend(notification["alert_ids"])
        gaps += notification["seq"] != expected[record.partition]
        expected[record.partition] = notification["seq"] + 1

    each_committed(kafka, kafka.topics.notifications, take)
    return alert_ids, ids, gaps


def _processed(kafka: KafkaSettings, detector: str, topic: str) -> tuple[int, int]:
    consumer = KafkaConsumer(**kafka.kafka_python(), group_id=kafka.topics.prefixed(detector), enable_auto_commit=False)
    try:
        assigned = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
        return sum(consumer.committed(each) or 0 for each in assigned), sum(consumer.end_offsets(assigned).values())
    finally:
        consumer.close()


def _reason(record: Any) -> str:
    """The first problem of a dead letter of upstream."""
    return header(record, MESSAGE).split(",")[0]

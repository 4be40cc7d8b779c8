"""What is wrong between what went in and what came out, by name. Pure functions; nothing of Lozenge is imported here.

lost-write    acknowledged, and not in the topic
unseen        it should have come out of a stage, and has not
duplicate     it came out more than once
unexpected    nothing calls for it, or it is not what should have come
out-of-order  an event precedes an earlier one of its card, or a row an earlier one of its file
gap           a number of a notification is missing, or repeated, in its partition
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.faults.oracle import Expected, PartitionOffset, Payment


class CopiedRow(NamedTuple):
    """A record of the raw topic that a file source has written: file and row, such as `a.parquet:17`."""

    position: PartitionOffset
    place: str
    txn_id: str


class Finding(NamedTuple):
    """Something that must not be."""

    name: str
    stage: str
    example: str


class Receipt(NamedTuple):
    """The broker's word for record `number` of the input."""

    number: int
    position: PartitionOffset


class Alert(NamedTuple):
    """A committed alert; `values` in the order of their names."""

    alert_id: str
    evidence: tuple[str, ...]
    values: tuple[tuple[str, str], ...]


class Notification(NamedTuple):
    """A committed notification. `is_alarm`: it is of the notifier itself, about a channel, and no detector's."""

    partition: int
    seq: int
    notification_id: str
    alert_ids: tuple[str, ...]
    is_alarm: bool = False


def in_raw(receipts: Iterable[Receipt], raw: Mapping[PartitionOffset, int]) -> Iterator[Finding]:
    """Compares the acknowledged records with the raw topic: the number of the record at each position."""
    acknowledged = Counter[int]()
    for receipt in receipts:
        acknowledged[receipt.number] += 1
        if raw.get(receipt.position) != receipt.number:
            yield Finding("lost-write", "raw", f"record {receipt.number} at {_text(receipt.position)}")
    there = Counter(raw.values())
    yield from (Finding("duplicate", "raw", f"record {number}, {n} times") for number, n in there.items() if n > 1)
    yield from (Finding("unexpected", "raw", f"record {number}") for number in there.keys() - acknowledged.keys())


def in_files(written: Mapping[str, str], copied: Sequence[CopiedRow]) -> Iterator[Finding]:
    """Each row of the files is one record, in the order of its file within a partition.

    `written` has the transaction of each row, by its place; `copied` are in offset order within a partition.
    """
    counts = Counter(row.place for row in copied)
    yield from (Finding("unseen", "files", f"row {place}") for place in written.keys() - counts.keys())
    yield from (Finding("duplicate", "files", f"row {place}, {n} times") for place, n in counts.items() if n > 1)
    latest: dict[tuple[int, str], int] = {}
    for row in copied:
        if written.get(row.place) != row.txn_id:
            yield Finding("unexpected", "files", f"row {row.place} with {row.txn_id} at {_text(row.position)}")
        file, _, number = row.place.rpartition(":")
        if int(number) < latest.get((row.position[0], file), -1):
            yield Finding("out-of-order", "files", f"row {row.place} at {_text(row.position)}")
        latest[row.position[0], file] = int(number)


def of_upstream(
    payments: Mapping[PartitionOffset, Payment | None],
    events: Sequence[tuple[PartitionOffset, str, str]],
    dead_letters: Sequence[PartitionOffset],
) -> Iterator[Finding]:
    """Each raw record is an event or a dead letter, once. An event: its raw position, id and card, in offset order."""
    canonical, dead = Counter(position for position, _, _ in events), Counter(dead_letters)
    for position, payment in payments.items():
        right, wrong = (canonical, dead) if payment else (dead, canonical)
        what = f"raw record {_text(position)}"
        if not right[position]:
            yield Finding("unseen", "upstream", what)
        if right[position] > 1:
            yield Finding("duplicate", "upstream", f"{what}, {right[position]} times")
        if wrong[position]:
            yield Finding("unexpected", "upstream", f"{what} as {'a dead letter' if payment else 'an event'}")
    for position in (canonical.keys() | dead.keys()) - payments.keys():
        yield Finding("unexpected", "upstream", f"raw record {_text(position)}, which does not exist")
    yield from _disorder(events)
    for position, event_id, card_id in events:
        known = payments.get(position)
        if known and (known.event_id, known.card_id) != (event_id, card_id):
            yield Finding("unexpected", "upstream", f"event {event_id} of {card_id} from raw record {_text(position)}")


def _disorder(events: Sequence[tuple[PartitionOffset, str, str]]) -> Iterator[Finding]:
    """A repeat of an event is none: only its first position counts."""
    latest: dict[str, int] = {}
    seen: set[PartitionOffset] = set()
    for position, event_id, card_id in events:
        if position in seen:
            continue
        seen.add(position)
        if position[1] < latest.get(card_id, -1):
            yield Finding("out-of-order", "upstream", f"event {event_id} of {card_id}")
        latest[card_id] = max(position[1], latest.get(card_id, -1))


def of_detector(name: str, expected: Iterable[Expected], alerts: Sequence[Alert]) -> Iterator[Finding]:
    """Each expected alert once, by its id and by the event that triggered it, and nothing else."""
    wanted = {e.alert_id: e for e in expected}
    counts = Counter(alert.alert_id for alert in alerts)
    triggers = Counter(evidence for _, evidence in {(alert.alert_id, alert.evidence) for alert in alerts})
    for alert_id, e in wanted.items():
        if not counts[alert_id]:
            yield Finding("unseen", name, f"alert {alert_id} on event {e.evidence[-1]}")
    for alert_id, n in counts.items():
        if n > 1:
            yield Finding("duplicate", name, f"alert {alert_id}, {n} times")
    for evidence, n in triggers.items():
        if n > 1:
            yield Finding("duplicate", name, f"alerts on event {evidence[-1]}, under {n} ids")
    for alert in alerts:
        known = wanted.get(alert.alert_id)
        if known is None:
            yield Finding("unexpected", name, f"alert {alert.alert_id}")
        elif (known.evidence, known.values) != (alert.evidence, alert.values if known.values else ()):
            yield Finding("unexpected", name, f"alert {alert.alert_id}: {alert[1:]} and not {known[1:]}")


def in_table(
    topic: str,
    records: Sequence[PartitionOffset],
    rows: Sequence[PartitionOffset],
    dead_letters: Sequence[PartitionOffset],
) -> Iterator[Finding]:
    """Each record of a topic is a row of its table or a dead letter of the sink, once; by their places in the topic."""
    there, counts = set(records), Counter([*rows, *dead_letters])
    yield from (Finding("unseen", "archive", f"record {_text(p)} of {topic}") for p in there - counts.keys())
    yield from (Finding("unexpected", "archive", f"row {_text(p)} of {topic}") for p in counts.keys() - there)
    yield from (
        Finding("duplicate", "archive", f"record {_text(p)} of {topic}, {n} times") for p, n in counts.items() if n > 1
    )


def in_cache(latest: Mapping[str, str], cached: Mapping[str, str]) -> Iterator[Finding]:
    """Each card has its latest event, by the event's id, and no other key is there."""
    for card_id, event_id in latest.items():
        if card_id not in cached:
            yield Finding("unseen", "cache", f"{card_id}, whose latest event is {event_id}")
        elif cached[card_id] != event_id:
            yield Finding("unexpected", "cache", f"event {cached[card_id]} of {card_id} and not {event_id}")
    yield from (Finding("unexpected", "cache", f"the key {key}") for key in cached.keys() - latest.keys())


def of_notifier(alert_ids: Iterable[str], notifications: Sequence[Notification]) -> Iterator[Finding]:
    """A notification for each alert, numbered without a gap in each partition, in offset order.

    The notifier may raise alarms of its own, each once.
    """
    asked = set(alert_ids)
    alarms = {alert_id for n in notifications if n.is_alarm for alert_id in n.alert_ids}
    counts = Counter(alert_id for n in notifications for alert_id in n.alert_ids)
    yield from (Finding("unseen", "notifier", f"alert {alert_id}") for alert_id in asked - counts.keys())
    yield from (Finding("unexpected", "notifier", f"alert {alert_id}") for alert_id in counts.keys() - asked - alarms)
    yield from (Finding("duplicate", "notifier", f"alert {a}, {n} times") for a, n in counts.items() if n > 1)
    ids = Counter(n.notification_id for n in notifications)
    yield from (Finding("duplicate", "notifier", f"notification {i}, {n} times") for i, n in ids.items() if n > 1)
    due = Counter[int]()
    for n in notifications:
        if n.seq != due[n.partition]:
            yield Finding("gap", "notifier", f"seq {n.seq} and not {due[n.partition]} in partition {n.partition}")
        due[n.partition] = n.seq + 1


def of_webhook(notification_ids: Iterable[str], delivered: Sequence[tuple[str, str]]) -> Iterator[Finding]:
    """Each notification at least once, under its own id: pairs of the message's id and the notification's."""
    asked, got = set(notification_ids), {notification_id for _, notification_id in delivered}
    yield from (Finding("unseen", "webhook", f"notification {i}") for i in asked - got)
    yield from (Finding("unexpected", "webhook", f"notification {i}") for i in got - asked)
    yield from (Finding("unexpected", "webhook", f"id {m} for notification {n}") for m, n in set(delivered) if m != n)


def _text(position: PartitionOffset) -> str:
    return f"{position[0]}:{position[1]}"

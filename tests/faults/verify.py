"""The independent verifier: `python -m tests.faults.verify FOLDER --bootstrap HOST:PORT --detectors NAME,NAME`.

A process of its own that reads every committed record with kafka-python, decodes with fastavro and the contracts'
.avsc files, and compares with the plain folds of `oracle`. It knows the raw topic, the receipts of its producer, the
log of the webhook's receiver (both in FOLDER) and the files of a file source; nothing of Lozenge is imported. Prints
JSON; exit code 1 if anything is lost, doubled, out of order or unexpected.
"""

import argparse
import io
import json
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
from kafka import KafkaConsumer, TopicPartition

from tests.faults import file_rows, findings, oracle, stores
from tests.faults.findings import Alert, CopiedRow, Finding, Notification, Receipt
from tests.faults.oracle import PartitionOffset
from tests.streams import AUTH

RAW, EVENTS, DEAD_LETTERS = "AUTH-JSON", "pay.canonical.auth.v1", "pay.dlq.upstream.v1"
SINK_DEAD_LETTERS = "pay.dlq.sink-archive.v1"
ALERTS, NOTIFICATIONS = "pay.alerts.{}.v1", "pay.notifications.v1"
SCHEMAS = Path(__file__).parents[2] / "shared" / "lozenge" / "contracts" / "schemas"
RECEIPTS, DELIVERIES = "receipts.txt", "deliveries.txt"
FILE_ROW = "lozenge-file-row"
FRAME_BYTES = 5
EXAMPLES = 5
POLL_MS, PATIENCE_POLLS = 1000, 60


class Result(NamedTuple):
    """What was counted at each stage, and what is wrong: (name, stage) with how often and a few examples."""

    counts: Mapping[str, int]
    wrong: Mapping[tuple[str, str], tuple[int, list[str]]]

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        wrong = [{"name": n, "stage": s, "count": c, "examples": e} for (n, s), (c, e) in sorted(self.wrong.items())]
        return {"holds": not self.wrong, "counts": dict(self.counts), "wrong": wrong}


def committed(bootstrap: str, topic: str) -> Iterator[Any]:
    """Every committed record of a topic, each partition in offset order."""
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        enable_auto_commit=False,
        max_poll_records=5000,
        fetch_max_bytes=16 << 20,
        max_partition_fetch_bytes=8 << 20,
    )
    try:
        positions = [TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic) or ())]
        consumer.assign(positions)
        consumer.seek_to_beginning(*positions)
        ends, silent = consumer.end_offsets(positions), 0
        while any(consumer.position(position) < end for position, end in ends.items()):
            polled = consumer.poll(POLL_MS)
            silent = 0 if polled else silent + 1
            if silent > PATIENCE_POLLS:
                raise TimeoutError(f"{topic} was not read to its end: {ends}")
            for records in polled.values():
                yield from records
    finally:
        consumer.close()


def _contract(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SCHEMAS / f"{name}.v1.avsc").read_text())
    return found


def decoded(values: Iterable[bytes], written: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The records in framed Avro bytes."""
    schema = fastavro.parse_schema(written)
    for value in values:
        fields: Any = fastavro.schemaless_reader(io.BytesIO(value[FRAME_BYTES:]), schema)
        yield fields


def verify(
    bootstrap: str,
    folder: Path,
    detectors: Collection[str],
    prefix: str,
    archive: Path | None,
    cache: str,
    files: Path | None,
) -> Result:
    """Reads every topic of the platform with this prefix and compares; other detectors than these raise nothing.

    The tables of `archive`, the server `cache` and the rows of `files` are compared too, where there are any.
    """
    counts: dict[str, int] = {}
    found: list[Finding] = []

    numbers: dict[PartitionOffset, int] = {}
    payments: dict[PartitionOffset, oracle.Payment | None] = {}
    copied: list[CopiedRow] = []
    for record in committed(bootstrap, prefix + RAW):
        position, headers = (record.partition, record.offset), dict(record.headers)
        if FILE_ROW in headers:
            copied.append(CopiedRow(position, headers[FILE_ROW].decode(), json.loads(record.value)["txn_id"]))
        else:
            numbers[position] = int(headers["number"])
        payments[position] = oracle.payment(position, record.value or b"", record.timestamp)
    receipts = [Receipt(n, (p, o)) for n, p, o in (map(int, line.split()) for line in _lines(folder / RECEIPTS))]
    counts["raw records"] = len(payments)
    found += findings.in_raw(receipts, numbers)
    written = file_rows.written_in(files) if files is not None else {}
    if files is not None:
        counts |= {"rows of files": len(written), "rows that were copied": len(copied)}
    found += findings.in_files(written, copied)

    values = (record.value for record in committed(bootstrap, prefix + EVENTS))
    decoded_events = decoded(values, AUTH.wire_schema)
    events = [((e["raw"]["partition"], e["raw"]["offset"]), e["event_id"], e["card_id"]) for e in decoded_events]
    dead = [_refused(record) for record in committed(bootstrap, prefix + DEAD_LETTERS)]
    counts |= {"events": len(events), "dead letters": len(dead)}
    counts["repeats of events"] = len(events) - len({position for position, _, _ in events})
    counts["repeats of dead letters"] = len(dead) - len(set(dead))
    found += findings.of_upstream(payments, events, dead)

    alert_ids: list[str] = []
    for name, expected in oracle.alerts(p for p in payments.values() if p).items():
        if name not in detectors:
            continue
        values = (record.value for record in committed(bootstrap, prefix + ALERTS.format(name)))
        alerts = [_alert(fields) for fields in decoded(values, _contract("alert"))]
        alert_ids += [alert.alert_id for alert in alerts]
        counts |= {f"alerts of {name}": len(alerts), f"expected of {name}": len(expected)}
        found += findings.of_detector(name, expected, alerts)

    records = list(committed(bootstrap, prefix + NOTIFICATIONS))
    fields = zip(records, decoded((r.value for r in records), _contract("notification")), strict=True)
    notifications = [
        Notification(r.partition, n["seq"], n["notification_id"], tuple(n["alert_ids"]), _is_alarm(n["title"]))
        for r, n in fields
    ]
    counts["notifications"] = len(notifications)
    counts["alarms about channels"] = sum(n.is_alarm for n in notifications)
    found += findings.of_notifier(alert_ids, notifications)

    delivered = [(message, notification) for message, notification in map(str.split, _lines(folder / DELIVERIES))]
    counts |= {"webhooks": len(delivered), "webhooks more than once": len(delivered) - len(set(delivered))}
    found += findings.of_webhook((n.notification_id for n in notifications), delivered)

    if archive is not None:
        alerts_of = [ALERTS.format(name) for name in detectors]
        topics = [prefix + topic for topic in (EVENTS, DEAD_LETTERS, NOTIFICATIONS, *alerts_of)]
        found += _in_tables(bootstrap, archive, topics, prefix, counts)
    if cache:
        latest = {card_id: event_id for _, event_id, card_id in events}
        cached = stores.cached_events(cache)
        counts |= {"keys of the topic": len(latest), "keys of the cache": len(cached)}
        found += findings.in_cache(latest, cached)
    return Result(counts, _summed(found))


def _in_tables(
    bootstrap: str, archive: Path, topics: Iterable[str], prefix: str, counts: dict[str, int]
) -> Iterator[Finding]:
    """Compares each table with its topic; `topics` have one, and others may."""
    dead = [_about(record) for record in committed(bootstrap, prefix + SINK_DEAD_LETTERS)]
    counts |= {"rows of the archive": 0, "dead letters of the archive": len(dead)}
    for topic in sorted({*topics, *stores.tables_in(archive)}):
        rows = stores.places_in(archive / topic)
        counts["rows of the archive"] += len(rows)
        places = [(record.partition, record.offset) for record in committed(bootstrap, topic)]
        yield from findings.in_table(topic, places, rows, [place for of, place in dead if of == topic])


def _about(record: Any) -> tuple[str, PartitionOffset]:
    """Topic and place of the record that a dead letter is about."""
    return dict(record.headers)["__connect.errors.topic"].decode(), _refused(record)


def _refused(record: Any) -> PartitionOffset:
    headers = dict(record.headers)
    return int(headers["__connect.errors.partition"]), int(headers["__connect.errors.offset"])


def _is_alarm(title: str) -> bool:
    """Whether a notification is the notifier's own, as of a webhook that hangs for long."""
    return title.startswith("channel ")


def _alert(fields: Mapping[str, Any]) -> Alert:
    evidence = fields["evidence"]
    return Alert(fields["alert_id"], tuple(evidence["event_ids"]), tuple(sorted(evidence["values"].items())))


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines()


def _summed(found: Iterable[Finding]) -> dict[tuple[str, str], tuple[int, list[str]]]:
    found = list(found)
    kinds = Counter((finding.name, finding.stage) for finding in found)
    return {
        kind: (n, list(islice((f.example for f in found if (f.name, f.stage) == kind), EXAMPLES)))
        for kind, n in kinds.items()
    }


def main() -> int:
    """Prints the result as JSON; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.verify", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--detectors", required=True, help="those that are deployed, by comma")
    parser.add_argument("--prefix", default="", help="with which the names of the platform's topics begin")
    parser.add_argument("--archive", type=Path, help="the folder of the tables, if they are compared")
    parser.add_argument("--cache", default="", help="the URL of the cache's server, if its keys are compared")
    parser.add_argument("--files", type=Path, help="the folder of the files, if their rows are compared")
    parser.add_argument(
        "--upstream", choices=["exactly-once", "at-least-once"], default="exactly-once", help="what upstream promises"
    )
    given = parser.parse_args()
    stores_of = given.archive, given.cache, given.files
    result = verify(given.bootstrap, given.folder, given.detectors.split(","), given.prefix, *stores_of)
    if given.upstream == "at-least-once":
        result = Result(result.counts, {k: v for k, v in result.wrong.items() if k != ("duplicate", "upstream")})
    json.dump(result.as_json(), sys.stdout, indent=1)
    return 0 if not result.wrong else 1


if __name__ == "__main__":
    sys.exit(main())

"""The tables of the archive: rows out of every file, once the sink has archived what the topics had."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from lozenge.archive.delta_table import ArchiveTable
from lozenge.archive.erased_rows import ALERT_ID, ENTITY, ErasureTarget
from lozenge.archive.erasure import ErasedTable, alerts_in, erase, erasing
from lozenge.archive.queries import tables_in
from lozenge.contracts.avro import Codec
from lozenge.contracts.partitioner import partition_of
from lozenge.errors import DecodeError, LozengeError
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.topic_reader import bounds, retained
from lozenge_deploy.operations.erasure.plan import Plan
from lozenge_deploy.operations.erasure.receipt import Line, Outcome, found, not_done

Ends = Mapping[int, int]


def erase_tables(plan: Plan) -> Iterator[Line]:
    """A line for each table. A table that has not come to the present end of its topic has another one."""
    if not any(plan.archive.glob("*/_delta_log")):
        yield Line(f"archive {plan.archive}", Outcome.NOTHING, what="there are no tables")
        return
    tables = tables_in(plan.archive)
    existing = partitions(plan.kafka)
    ends = {
        table.topic: {p: end for p, (_, end) in bounds(plan.kafka, table.topic, existing[table.topic]).items()}
        for table in tables
        if table.topic in existing
    }
    with erasing(plan.archive):
        # a notification is found by the alerts of its case, whose ids their own erasure removes
        notifications = plan.kafka.topics.notifications
        for table in sorted(tables, key=lambda table: table.topic != notifications):
            alerts = _alerts_in(tables, plan) if table.topic == notifications else frozenset[str]()
            yield from _erase(plan, table, ends.get(table.topic, {}), alerts)


def _alerts_in(tables: Iterable[ArchiveTable], plan: Plan) -> frozenset[str]:
    """The ids of the subject's alerts: those that are archived, and those of notifications that the topic has."""
    naming = [table for table in tables if {ENTITY, ALERT_ID} <= {*table.columns.names}]
    found = {id for table in naming for id in alerts_in(table.folder, plan.subject)}
    topic, codec = plan.kafka.topics.notifications, Codec.of("notification")
    if (count := partitions(plan.kafka).get(topic)) is not None:
        for message in retained(plan.kafka, topic, count):
            if message.key() == plan.subject.name.encode() and message.value() is not None:
                with suppress(DecodeError):  # of others: it names no alert of ours
                    found |= {*codec.decode(message.value())["alert_ids"]}
    return frozenset(found)


def _erase(plan: Plan, table: ArchiveTable, ends: Ends, alerts: frozenset[str]) -> Iterator[Line]:
    place = f"table {table.view}"

    def behind() -> int:
        table.refresh()
        archived = table.ends(ends)
        return sum(max(0, end - archived.get(partition, 0)) for partition, end in ends.items())

    try:
        left = plan.reaches(behind, f"{table.view} to have what its topic has")
        column, bucket = _place_of(plan, table)
        done = erase(table.folder, ErasureTarget(plan.subject, column, alerts), bucket, dry_run=plan.dry_run)
        yield found(place, done.removed + done.masked, _said(done), dry_run=plan.dry_run)
        if left:
            yield Line(
                place,
                Outcome.NOT_DONE,
                what=f"{left} records of its topic are not archived yet: run this again once its sink has caught up",
            )
    except LozengeError as error:
        yield not_done(place, error)


def _place_of(plan: Plan, table: ArchiveTable) -> tuple[str, int | None]:
    """The column that has the subject, and the bucket of its rows if the topic is keyed by it."""
    for stream in plan.streams.definitions:
        if stream.events(plan.kafka.topics) == table.topic and (column := stream.keys.get(plan.subject.key)):
            mine = stream.primary == plan.subject.key
            return column, partition_of(plan.subject.value.encode(), table.buckets) if mine else None
    return "", None


def _said(done: ErasedTable) -> str:
    """A row may be in several files, since files that were merged stay for some days."""
    named = f", of which {done.masked} are of others and lose the word alone" if done.masked else ""
    return f"rows in {done.files} files of all versions{named}"

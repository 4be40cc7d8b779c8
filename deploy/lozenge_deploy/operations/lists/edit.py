"""Changes a reference list: entries and their audit records in one transaction, after whatever others have changed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lozenge.contracts.record import Record
from lozenge.contracts.topics import reference_list
from lozenge.errors import UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics, partitions
from lozenge.kafka.versioned_topics import read_records
from lozenge.kafka.writers import TransactionalWriter, exclusively
from lozenge.near_names import near_hint
from lozenge.process.waiting import wait_until
from lozenge.protocol.list_entries import ListEntry, decode
from lozenge_deploy.operations import audit
from lozenge_deploy.operations.lists.changes import Entries, EntryChange, ListChanges
from lozenge_deploy.operations.lists.list_usage import names

VISIBLE_SECONDS = 10.0
"""So long a change waits until readers see it, so that the next command does."""
Decide = Callable[[Entries], ListChanges]
"""What is to change, given the entries that there are."""


def present(kafka: KafkaSettings, name: str) -> dict[str, ListEntry]:
    """The entries of a list by value, in the order of the values; raises UsageError if there is no such list."""
    _require(kafka, name)
    return entries_of(kafka, name)


def entries_of(kafka: KafkaSettings, name: str) -> dict[str, ListEntry]:
    """The same of a list that there is."""
    _, entries = read_records(kafka, reference_list(kafka.topics, name).name, decode)
    return dict(sorted(entries.items()))


def edit(
    kafka: KafkaSettings, name: str, decide: Decide, *, create: bool = False, dry_run: bool = False, note: str = ""
) -> ListChanges:
    """Makes the changes on which `decide` decides, all or none, and records each in the audit log with the `note`.

    Of two at once the later one decides on what the earlier one has left. With `create` the list need not exist; a
    `dry_run` changes nothing. Raises what `decide` raises, UsageError if there is no such list, BrokerUnavailable.
    """
    new = create and reference_list(kafka.topics, name).name not in partitions(kafka)
    if dry_run:
        return decide({} if new else present(kafka, name))
    if new:
        decide({})  # what it refuses creates no list
        ensure_topics(kafka, [reference_list(kafka.topics, name)])
    _require(kafka, name)
    ensure_topics(kafka, [kafka.topics.control.audit])
    # One writer for each list: transactions never overlap, so every reader sees the whole of one or nothing of it.
    return exclusively(kafka, writer_of(name), lambda writer: _edit(kafka, writer, name, decide, note))


def writer_of(name: str) -> str:
    """The transactional id by which a list is changed."""
    return f"lozenge-list-{name}"


def _edit(kafka: KafkaSettings, writer: TransactionalWriter, name: str, decide: Decide, note: str) -> ListChanges:
    before = entries_of(kafka, name)
    changes = decide(before)
    if changes.made:
        topic = reference_list(kafka.topics, name).name
        writer.write([record for change in changes.made for record in _records(kafka, name, topic, change, note)])
        wait_until(lambda: entries_of(kafka, name) != before, VISIBLE_SECONDS)
    return changes


def _records(kafka: KafkaSettings, name: str, topic: str, change: EntryChange, note: str) -> list[Record]:
    value = change.entry.value
    detail: Mapping[str, Any] = {"before": change.before, "after": change.after, "note": note}
    return [
        Record(topic, 0, value.encode(), change.after.encoded() if change.after is not None else None),
        audit.kafka_record(kafka, f"list entry {change.what}", f"{name}: {value}", detail),
    ]


def _require(kafka: KafkaSettings, name: str) -> None:
    if name not in (there := names(kafka)):
        raise UsageError(f"looking for list {name}: the platform does not have it", hint=_instead_of(name, there))


def _instead_of(name: str, there: Sequence[str]) -> str:
    """What to do about a list that there is not, given those that there are."""
    new = (
        f"`lozenge list add {name} VALUE --reason TEXT --new` creates it, as `import` does with --new, and so does "
        "the deployment of a detector that declares it"
    )
    if not there:
        return f"it has no list yet; {new}"
    return "; ".join(filter(None, (near_hint(name, there), f"`lozenge list ls` shows all {len(there)}", new)))

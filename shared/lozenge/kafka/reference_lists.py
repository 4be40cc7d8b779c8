"""The entries of a reference list, read from its topic, now or as of an offset."""

from lozenge.kafka.row_decoding import row_of
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import read
from lozenge.protocol.list_entries import ListEntry, decode


def read_entries(kafka: KafkaSettings, topic: str, before: int | None = None) -> tuple[int, dict[str, ListEntry]]:
    """The offset behind the last change, and the entries by value; of the records `before` an offset if there is one.

    Raises BrokerUnavailable.
    """
    entries, changed = dict[str, ListEntry](), 0
    for message in read(kafka, topic, {0: 0}):
        offset, key = message.offset() or 0, message.key() or b""
        if before is not None and offset >= before:
            break
        if message.value() is None:
            entries.pop(key.decode(errors="replace"), None)
        elif (entry := row_of(message, decode)) is not None:
            entries[entry.value] = entry
        else:
            continue
        changed = offset + 1
    return changed, entries

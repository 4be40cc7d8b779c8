"""The live records of a topic whose versions are recorded, such as a reference list: now or as of an offset."""

from collections.abc import Callable
from typing import TypeVar

from lozenge.kafka.row_decoding import row_of
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import read

R = TypeVar("R")


def read_records(
    kafka: KafkaSettings,
    topic: str,
    decode: Callable[[bytes, bytes], R],
    *,
    before: int | None = None,
    settled: bool = False,
) -> tuple[int, dict[str, R]]:
    """The offset behind the last change, and what `decode` makes of the records, by key.

    Of the records `before` an offset if there is one. `settled` as in `read`. Raises BrokerUnavailable.
    """
    found, changed = dict[str, R](), 0
    for message in read(kafka, topic, {0: 0}, settled=settled):
        offset, key = message.offset() or 0, (message.key() or b"").decode(errors="replace")
        if before is not None and offset >= before:
            break
        if message.value() is None:
            found.pop(key, None)
        elif (row := row_of(message, decode)) is not None:
            found[key] = row
        else:
            continue
        changed = offset + 1
    return changed, found

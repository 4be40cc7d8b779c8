"""Where records lie: a partition of a topic, an offset in it, and how people write that."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lozenge.errors import UsageError

Partition = tuple[str, int]
"""Topic and number."""
RecordPosition = tuple[int, int]
"""Number of a partition, and offset."""
_POSITION = r"(\d{1,9}):(\d{1,19})"


class Record(NamedTuple):
    """One record to write. The partition is always explicit."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


def parse_position(text: str) -> RecordPosition:
    """The partition and offset in "2:9120"; raises UsageError."""
    match = re.fullmatch(_POSITION, text)
    if match is None:
        raise UsageError(f"reading {text}: no position in a topic", hint="write partition and offset, such as 2:9120")
    return int(match[1]), int(match[2])


def format_positions(positions: Iterable[RecordPosition]) -> str:
    """Positions as people read them: "0:9120 1:8873"."""
    return " ".join(f"{partition}:{offset}" for partition, offset in positions)


def parse_offsets(text: str) -> dict[int, int]:
    """The offsets by partition in "0:9120 1:88", separated by spaces or commas; raises UsageError."""
    parts = re.split(r"[\s,]+", text.strip())
    found = [re.fullmatch(_POSITION, part) for part in parts]
    offsets = {int(match[1]): int(match[2]) for match in found if match is not None}
    if len(offsets) != len(parts):
        raise UsageError(f"reading {text}: not offsets by partition", hint='write them as "0:9120 1:88", each once')
    return offsets

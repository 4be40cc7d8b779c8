"""Deterministic identifiers: UUIDv5 over the parts that make a thing itself.

The parts are joined by U+001F (unit separator), which no part may contain, so `("a", "bc")` and
`("ab", "c")` differ. The same function exists for Python and for Spark; a test holds them equal.
"""

import uuid
from hashlib import sha1
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

NAMESPACE = uuid.UUID("6c6f7a65-6e67-5e00-8000-000000000001")
"""The project's own UUID namespace; changing it changes every id, so it never changes."""

_NAMESPACE_BYTES = NAMESPACE.bytes
_SEPARATOR = "\x1f"


def uuid5(*parts: str) -> str:
    """The lower-case UUIDv5 text of `parts`."""
    # as `uuid.uuid5`, which takes three times as long, and every alert has one
    digest = sha1(_NAMESPACE_BYTES + _SEPARATOR.join(parts).encode(), usedforsecurity=False).hexdigest()
    variant = "89ab"[int(digest[16], 16) % 4]
    return f"{digest[:8]}-{digest[8:12]}-5{digest[13:16]}-{variant}{digest[17:20]}-{digest[20:32]}"


def uuid5_column(*parts: "Column") -> "Column":
    """`uuid5` as a Spark expression; null if any part is null."""
    from pyspark.sql import functions as F

    name = F.lit("").cast("string")
    for index, part in enumerate(parts):
        text = part.cast("string")
        name = text if index == 0 else F.concat(name, F.lit(_SEPARATOR), text)
    namespace = F.unhex(F.lit(NAMESPACE.hex))
    digest = F.sha1(F.concat(namespace, name.cast("binary")))
    variant = F.substr(
        F.lit("89ab"), F.conv(F.substr(digest, F.lit(17), F.lit(1)), 16, 10).cast("int") % 4 + 1, F.lit(1)
    )
    return F.concat(
        F.substr(digest, F.lit(1), F.lit(8)),
        F.lit("-"),
        F.substr(digest, F.lit(9), F.lit(4)),
        F.lit("-5"),
        F.substr(digest, F.lit(14), F.lit(3)),
        F.lit("-"),
        variant,
        F.substr(digest, F.lit(18), F.lit(3)),
        F.lit("-"),
        F.substr(digest, F.lit(21), F.lit(12)),
    )


def event_id(source: str, transaction_id: str) -> str:
    """The id of the event that `source` calls `transaction_id`."""
    return uuid5(source, transaction_id)


def alert_id_column(detector: str, entity_type: str, entity_id: "Column", dedup_key: "Column") -> "Column":
    """`alert_id` as a Spark expression; null if there is no entity or no deduplication key."""
    from pyspark.sql import functions as F

    return uuid5_column(F.lit(detector), F.lit(entity_type), entity_id, dedup_key)


def alert_id(detector: str, entity_type: str, entity_id: str, dedup_key: str) -> str:
    """The id of an alert; `dedup_key` is the triggering event id, the timer, or window start and band."""
    return uuid5(detector, entity_type, entity_id, dedup_key)

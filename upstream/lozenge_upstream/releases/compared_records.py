"""What two mappings make of the same raw records, and where that differs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lozenge_upstream.normalise.field_checks import EVENT_TIME
from lozenge_upstream.normalise.mapping import Mapping
from lozenge_upstream.normalise.normaliser import SKIPPED, column_of, normalise

UNREAD = "unread"
"""The reason of a record whose topic no mapping reads."""
EVENT, DEAD_LETTER, SKIP = "event", "dead letter", "skipped"


class Difference(NamedTuple):
    """A raw record of which something else becomes: reasons before and after, None for an event, and its values."""

    partition: int
    offset: int
    reasons: tuple[str | None, str | None]
    values: tuple[Sequence[str | None] | None, Sequence[str | None] | None]


def names_of(mappings: Sequence[Mapping | None]) -> list[str]:
    """What an event of these mappings has, in its order: `event_id`, `event_time` and the fields of all."""
    fields = (field.name for mapping in mappings if mapping is not None for field in mapping.stream.fields)
    return ["event_id", EVENT_TIME, *dict.fromkeys(fields)]


def differences(
    raw: DataFrame, before: Mapping | None, after: Mapping | None, names: Sequence[str], token_key: bytes
) -> list[Difference]:
    """Every record of `raw` of which the mappings make something else; None reads none. By partition and offset.

    Values are texts in the order of `names`, null for an optional field and for all of a record that is no event.
    """
    one, other = (_made(raw, mapping, names, token_key, side) for mapping, side in ((before, "b"), (after, "a")))
    same = F.col("b_reason").eqNullSafe(F.col("a_reason")) & F.col("b_values").eqNullSafe(F.col("a_values"))
    found = one.join(F.broadcast(other), ["partition", "offset"]).where(~same).collect()
    return [
        Difference(
            row["partition"], row["offset"], (row["b_reason"], row["a_reason"]), (row["b_values"], row["a_values"])
        )
        for row in sorted(found, key=lambda row: (row["partition"], row["offset"]))
    ]


def outcome(reason: str | None) -> str:
    """What becomes of a record: an event, a dead letter, or neither."""
    if reason is None:
        return EVENT
    return SKIP if reason.startswith(SKIPPED) else UNREAD if reason == UNREAD else DEAD_LETTER


def _made(raw: DataFrame, mapping: Mapping | None, names: Sequence[str], token_key: bytes, side: str) -> DataFrame:
    if mapping is None:
        reason: Column = F.lit(UNREAD)
        values = F.lit(None).cast("array<string>")
        return raw.select("partition", "offset", reason.alias(f"{side}_reason"), values.alias(f"{side}_values"))
    own = {"event_id", EVENT_TIME, *(field.name for field in mapping.stream.fields)}
    texts = F.array(*(_text(name) if name in own else F.lit(None).cast("string") for name in names))
    return normalise(raw, mapping, token_key).select(
        "partition", "offset", F.col("reason").alias(f"{side}_reason"), _if_event(texts).alias(f"{side}_values")
    )


def _if_event(values: Column) -> Column:
    return F.when(F.col("reason").isNull(), values)


def _text(name: str) -> Any:
    # a time as microseconds: the text of Spark has the session's zone, and Python's calendar is shorter
    return F.unix_micros(name).cast("string") if name == EVENT_TIME else F.col(column_of(name)).cast("string")

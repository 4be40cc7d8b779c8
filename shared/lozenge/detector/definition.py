"""What a data scientist declares: one function, its settings, its tables.

    detector = Detector(detect, settings=LargeAmount)

`detect(events, settings, tables)` takes a DataFrame of events and returns a DataFrame of alerts (its
columns made by `alert(...)`) or, for a stateful detector, a `Fold`. It builds expressions only: it is
called once per start of the query, never per record or batch.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_jsonable_python

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lozenge.detector.fold import Fold

INPUT = "_input"
"""Struct column of every event that belongs to the platform: key, partition, offset, traceparent, arrived."""

RAW = "raw"
"""Struct column with partition and offset of the raw record. A fold's events lack it: it is dear, an id names them."""


class Settings(BaseModel):
    """Base class of a detector's settings: immutable, validated, unknown names refused.

    Durations may be written "10m". The digest names the exact values in every alert.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    @property
    def digest(self) -> str:
        """Twelve hex digits over the values, the same in every process and whatever the order of the fields."""
        values = to_jsonable_python(sets_in_order(self.model_dump()), timedelta_mode="float")
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def sets_in_order(value: Any) -> Any:
    """The value with a sorted list in place of each set: the order of a set differs from process to process."""
    match value:
        case dict():
            return {key: sets_in_order(each) for key, each in value.items()}
        case list() | tuple():
            return [*map(sets_in_order, value)]
        case set() | frozenset():
            return sorted(map(sets_in_order, value), key=lambda each: json.dumps(to_jsonable_python(each)))
        case _:
            return value


S = TypeVar("S", bound=Settings)
Tables = Mapping[str, "DataFrame"]
"""The reference tables that the detector declared, by name. Join them left: a miss gives nulls."""


@dataclass(frozen=True)
class Detector(Generic[S]):
    """A detector: its function and the class of its settings (defaults must make it run)."""

    detect: Callable[["DataFrame", S, Tables], "DataFrame | Fold[Any]"]
    """Called with the events, the settings and the tables. It builds expressions and starts no Spark action."""

    settings: type[S]
    """The class of its settings; `Settings` itself for a detector that has none."""


def alert(
    *,
    reason: "Column",
    score: "Column | float" = 0.5,
    title: "Column | str | None" = None,
    severity: "Column | str | None" = None,
    evidence: "Column | None" = None,
    values: "Mapping[str, Column] | None" = None,
    labels: "Mapping[str, Column] | None" = None,
    entity: "Column | None" = None,
    at: "Column | None" = None,
    window: "Column | None" = None,
    band: "Column | str" = "",
) -> list["Column"]:
    """The columns of an alert, for `DataFrame.select(*alert(...))`.

    A rule needs only `reason`: entity, time, trigger and evidence are those of the event. After a `groupBy` name what
    the group lost: `entity`, `at`, `window` and `band`. Raises ValueError if `window` comes without `entity` and `at`,
    and TypeError for a value that is no column.

    - `reason`: text for a person, with the amounts, places and times that decided.
    - `score`: from 0 (harmless) to 1 (certain). An event whose score is null, NaN or outside is a dead letter.
    - `title`: one line for a list; the manifest's unless given.
    - `severity`: info, low, medium, high or critical; the manifest's unless given.
    - `evidence`: an array of event ids; the event's own unless given.
    - `values`: the values that decided, by name; they become text.
    - `labels`: by name, for routes, silences and inhibition; they become text.
    - `entity`: what the alert is about; the event's key unless given. After a `groupBy` the grouping key.
    - `at`: the alert's event time; the event's unless given. After a `groupBy`, such as `F.max("event_time")`.
    - `window`: the column of `F.window` that the group has.
    - `band`: the limit that was crossed. Entity, window and band make the alert's id, so each is raised once.
    """
    from pyspark.sql import Column
    from pyspark.sql import functions as F

    def column(value: Any) -> "Column":
        if not isinstance(value, Column):
            raise TypeError(f"alert(...) takes columns: write F.lit({value!r})")
        return value

    def text(value: "Column | str | None") -> "Column":
        return (F.lit(value) if value is None or isinstance(value, str) else column(value)).cast("string")

    def mapping(items: "Mapping[str, Column] | None") -> "Column":
        if not items:
            return F.map_from_arrays(F.array().cast("array<string>"), F.array().cast("array<string>"))
        pairs = [part for name, value in items.items() for part in (F.lit(name), text(value))]
        return F.create_map(*pairs)

    null = F.lit(None)
    if window is None:
        key, moment = F.col(f"{INPUT}.key"), F.col("event_time")
        trigger = F.struct(F.col(f"{INPUT}.partition").alias("partition"), F.col(f"{INPUT}.offset").alias("offset"))
        dedup_key, closes = F.col("event_id"), F.col("event_time")
        traceparent, arrived = F.col(f"{INPUT}.traceparent"), F.col(f"{INPUT}.arrived")
        events = F.array(F.col("event_id"))
    else:
        if entity is None or at is None:
            raise ValueError("alert(window=...) needs entity= and at= too: the group has lost them")
        key, moment = entity, at
        trigger = null.cast("struct<partition: int, offset: bigint>")
        dedup_key = F.concat(F.unix_micros(window.getField("start")).cast("string"), F.lit("/"), text(band))
        closes = window.getField("end")
        traceparent, arrived = null.cast("string"), null.cast("timestamp")
        events = F.array().cast("array<string>")
    return [
        (entity if entity is not None else key).cast("string").alias("entity"),
        text(severity).alias("severity"),
        (F.lit(score) if isinstance(score, int | float) else column(score)).cast("double").alias("score"),
        text(title).alias("title"),
        column(reason).cast("string").alias("reason"),
        (evidence if evidence is not None else events).cast("array<string>").alias("evidence"),
        mapping(values).alias("values"),
        (at if at is not None else moment).alias("event_time"),
        trigger.alias("trigger"),
        mapping(labels).alias("labels"),
        dedup_key.alias("dedup_key"),
        closes.alias("closes"),
        traceparent.alias("traceparent"),
        arrived.alias("arrived"),
    ]

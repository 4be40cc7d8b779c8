"""Events as Spark hands them to a fold."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lozenge.streams.definition import StreamDefinition
from lozenge.testing import events
from lozenge.testing.events import PartialEvent, event_table
from tests.streams import AUTH


def batch(partials: Sequence[PartialEvent], stream: StreamDefinition = AUTH, key: str = "card_id") -> pa.Table:
    """The events with the platform's columns flattened."""
    table = event_table(events(partials, stream), key, stream).drop(["raw"])
    own: Any = table.column("_input").combine_chunks()
    for name in ("partition", "offset", "traceparent", "arrived"):
        table = table.append_column(f"_input_{name}", own.field(name))
    return table.drop(["_input"])

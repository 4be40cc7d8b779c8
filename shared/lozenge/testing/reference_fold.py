"""A fold without Spark, batches and restarts: the reference that `FoldOperator` is compared with."""

from collections.abc import Iterable
from typing import Any

from lozenge.contracts.partitioner import partition_of
from lozenge.detector.definition import RAW
from lozenge.detector.events import event_type
from lozenge.detector.fold import Fold, Outcome, PartitionState, key_bytes
from lozenge.streams.definition import StreamDefinition
from lozenge.testing.events import PLATFORM, PartialEvent, events, the_stream


def run_fold(
    fold: Fold[Any],
    settings: Any,
    partials: Iterable[PartialEvent],
    key: str = "",
    stream: StreamDefinition | None = None,
) -> list[Outcome]:
    """Alerts and failures of `fold` over these events, in order. `key` is the key of the input topic.

    The fold's own expressions (`fold.events`) are not evaluated. So the fold may be made with `fold(None, ...)`, and
    receives every event unchanged.
    """
    of = the_stream(stream)
    column = of.column(key)
    states = [PartitionState(fold, settings) for _ in range(PLATFORM.partitions)]
    outcomes: list[Outcome] = []
    for complete in events(partials, of):
        if complete[column] is None:
            continue  # the job skips such events too
        fields = {name: value for name, value in complete.items() if name != RAW}
        event = event_type(tuple(fields))(**fields)
        state = states[partition_of(complete[column].encode(), PLATFORM.partitions)]
        outcomes.extend(state.process(key_bytes(complete[name] for name in fold.by), event))
    return outcomes

"""The fold by itself: no Spark, no batches, no restarts. What any host must agree with."""

from collections.abc import Iterable
from typing import Any

from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.topics import EVENT_PARTITIONS
from lozenge.detector.definition import RAW
from lozenge.detector.events import event_type
from lozenge.detector.fold import Fold, Outcome, PartitionState, key_bytes
from lozenge.testing.events import Partial, events


def plain_fold(fold: Fold[Any], settings: Any, partials: Iterable[Partial], key: str = "card_id") -> list[Outcome]:
    """Alerts and failures of `fold` over these events, in order; `key` is the column that the topic is keyed by.

    The fold's own expressions (`fold.events`) are not evaluated, so it may be made with `fold(None, ...)`
    and then sees every event as it is.
    """
    slots = [PartitionState(fold, settings) for _ in range(EVENT_PARTITIONS)]
    outcomes: list[Outcome] = []
    for whole in events(partials):
        if whole[key] is None:
            continue  # as the job leaves it out
        seen = {name: value for name, value in whole.items() if name != RAW}
        event = event_type(tuple(seen))(**seen)
        slot = slots[partition_of(whole[key].encode(), EVENT_PARTITIONS)]
        outcomes.extend(slot.advance(key_bytes(whole[name] for name in fold.by), event))
    return outcomes

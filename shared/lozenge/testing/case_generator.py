"""A stream of events for one detector, gathered from what its own tests have given to `run`."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import count, pairwise
from random import Random

from lozenge.contracts.partitioner import partition_of
from lozenge.contracts.topics import EVENT_PARTITIONS
from lozenge.testing.events import Whole
from lozenge.testing.runner import Case, Run

MOST = 300
"""Events of tests that are gathered at most."""
RECOMBINED = 40
_ENTITIES = 4
_PARTITION = 0  # all in one: each is a stream of its own to Spark, which costs


def gather(runs: Sequence[tuple[Case, Run]], seed: int) -> Case | None:
    """One case out of many: their events by time, then `RECOMBINED` more of the same values; None without an alert.

    Of runs with several settings or tables those that told the most count. Each run's entities become others, so that
    no test's events meet another's. What became a dead letter is left out.
    """
    alike: dict[tuple[str, str], list[tuple[Case, Run]]] = defaultdict(list)
    for case, told in runs:
        alike[case.settings.digest, repr(case.tables)].append((case, told))
    chosen = max(alike.values(), key=lambda group: sum(len(told.told) for _, told in group), default=[])
    if not any(told for _, told in chosen):
        return None
    first, _ = chosen[0]
    key = first.loaded.declaration.key_column
    gathered: list[Whole] = []
    for number, (case, told) in enumerate(chosen, 1):
        bad = {letter.event_id for letter in told.dead_letters}
        good = [e for e in case.events if e["event_id"] not in bad and e["event_time"] is not None]
        if len(gathered) + len(good) <= MOST:
            gathered += [{**e, "event_id": f"{number}-{e['event_id']}", key: entity(e[key], f"{number}")} for e in good]
    gathered.sort(key=lambda event: event["event_time"])
    return replace(first, events=[*gathered, *_recombined(gathered, key, Random(seed))])


def entity(name: str | None, mark: str) -> str | None:
    """Another entity for each mark, in the partition where all of them are; none stays none."""
    if name is None:
        return None
    names = (f"{name}/{mark}{'~' * n}" for n in count())
    return next(name for name in names if partition_of(name.encode(), EVENT_PARTITIONS) == _PARTITION)


def _recombined(gathered: Sequence[Whole], key: str, random: Random) -> list[Whole]:
    """Further events behind these: one of them each, with one field of another, by a few entities in turn."""
    gaps = [gap for a, b in pairwise(gathered) if (gap := b["event_time"] - a["event_time"])] or [timedelta(seconds=1)]
    entities = [entity("recombined", str(number)) for number in range(_ENTITIES)]
    own = {"event_id", "event_time", "raw", key}
    at = gathered[-1]["event_time"]
    further = []
    for number in range(RECOMBINED):
        at += random.choice(gaps)
        field = random.choice([name for name in gathered[0] if name not in own])
        values = {field: random.choice(gathered)[field], key: random.choice(entities)}
        further.append({**random.choice(gathered), **values, "event_id": f"recombined-{number}", "event_time": at})
    return further

"""Makes one stream of events for a detector, from the events that its own tests gave to `run`."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import count, pairwise
from random import Random
from typing import Any

from lozenge.contracts.partitioner import partition_of
from lozenge.streams.union_schema import STREAM
from lozenge.testing.events import PLATFORM, CompleteEvent
from lozenge.testing.runner import Run, RunInput

MAX_EVENTS = 300
"""The largest number of events that are taken from tests."""
RECOMBINED = 40
_ENTITIES = 4
_PARTITION = 0  # all in one: Spark reads each partition as a stream of its own, which costs time


def gather(runs: Sequence[tuple[RunInput, Run]], seed: int) -> RunInput | None:
    """One case of many: their events by event time, then `RECOMBINED` more with the same values.

    Returns None if no run has an alert. If runs differ in settings or tables, those with the most alerts are taken. The
    entities of each run are renamed, so that events of two tests never meet; a row that a test gives for one of them in
    a table is there for each of its names. Events that became dead letters are skipped.
    """
    by_config: dict[tuple[str, str], list[tuple[RunInput, Run]]] = defaultdict(list)
    for case, result in runs:
        by_config[case.settings.digest, repr(case.tables)].append((case, result))
    chosen = max(by_config.values(), key=lambda group: sum(len(result.reasons) for _, result in group), default=[])
    if not any(result for _, result in chosen):
        return None
    first, _ = chosen[0]
    key = first.loaded.key_column
    gathered: list[CompleteEvent] = []
    names: dict[str, set[str]] = defaultdict(set)
    for number, (case, result) in enumerate(chosen, 1):
        failed = {dead_letter.event_id for dead_letter in result.dead_letters}
        good = [e for e in case.events if e["event_id"] not in failed and e["event_time"] is not None]
        if len(gathered) + len(good) <= MAX_EVENTS:
            renamed = {name: _renamed(name, f"{number}") for name in {e[key] for e in good if e[key] is not None}}
            gathered += [{**e, "event_id": f"{number}-{e['event_id']}", key: renamed.get(e[key])} for e in good]
            for name, new in renamed.items():
                names[name].add(new)
    gathered.sort(key=lambda event: event["event_time"])
    listed = sorted(names.keys() & {text for rows in first.tables.values() for row in rows for text in _texts(row)})
    if listed:
        names[listed[0]].update(_recombined_entities())
    tables = {table: list(_of_each_name(rows, names)) for table, rows in first.tables.items()}
    return replace(first, tables=tables, events=[*gathered, *_recombined(gathered, key, Random(seed))])


def entity(name: str | None, suffix: str) -> str | None:
    """A different entity for each suffix, always in the same partition. None stays None."""
    return None if name is None else _renamed(name, suffix)


def _renamed(name: str, suffix: str) -> str:
    names = (f"{name}/{suffix}{'~' * n}" for n in count())
    return next(name for name in names if partition_of(name.encode(), PLATFORM.partitions) == _PARTITION)


def _recombined_entities() -> list[str]:
    return [_renamed("recombined", str(number)) for number in range(_ENTITIES)]


def _texts(row: Mapping[str, Any]) -> set[str]:
    return {value for value in row.values() if isinstance(value, str)}


def _of_each_name(rows: Sequence[Mapping[str, Any]], names: Mapping[str, set[str]]) -> Iterator[Mapping[str, Any]]:
    """The rows, each followed by its copies for the further names of an entity that it names."""
    for row in rows:
        yield row
        for known in sorted(_texts(row) & names.keys()):
            for name in sorted(names[known]):
                yield {column: name if value == known else value for column, value in row.items()}


def _recombined(gathered: Sequence[CompleteEvent], key: str, random: Random) -> list[CompleteEvent]:
    """Events after these: copies of one, with one field of another of its stream, each for one of a few entities."""
    gaps = [gap for a, b in pairwise(gathered) if (gap := b["event_time"] - a["event_time"])] or [timedelta(seconds=1)]
    entities = _recombined_entities()
    own = [name for name in gathered[0] if name not in {"event_id", "event_time", "raw", STREAM, key}]
    at = gathered[-1]["event_time"]
    recombined = []
    for number in range(RECOMBINED):
        at += random.choice(gaps)
        field = random.choice(own) if own else key
        other, named = random.choice(gathered), {key: random.choice(entities), "event_id": f"recombined-{number}"}
        copied = random.choice(gathered)
        values = {field: other[field]} if other.get(STREAM) == copied.get(STREAM) else {}
        recombined.append({**copied, **values, **named, "event_time": at})
    return recombined

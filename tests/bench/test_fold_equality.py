"""The fold over a million events, of 5,000 keys and of 1,000,000: live or by batches, the plain fold's alerts.

`make bench-pytest`: the live job reads them from Kafka in batches of 200,000 and of 20,000; the operator is fed in
batches of 1, 7 and 1,000, the two smallest for the first 100,000 events.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from lozenge import Alert, Detector, Event, Fold, Settings, State, Tables, fold
from lozenge.contracts.avro import Codec
from lozenge.contracts.partitioner import partition_of
from lozenge.detector.events import event_type
from lozenge.detector.fold import PartitionState, Raised, key_bytes
from lozenge.detector.loader import LoadedDetector
from lozenge.detector.manifest import Manifest
from lozenge.job.operators.fold_operator import FoldOperator
from lozenge.kafka.settings import KafkaSettings
from tests.bench.backlog import CARDS, EVENTS, drain, events
from tests.bench.harness.platform import TOPICS
from tests.integration.harness import committed
from tests.streams import AUTH

PARTS = TOPICS.partitions
BY: dict[int, tuple[str, ...]] = {CARDS: ("card_id",), EVENTS: ("card_id", "event_id")}
COLUMNS = ("event_id", "event_time", "card_id", "merchant_id")


class Seen(State):
    n: int = 0
    last: str = ""


def step(seen: Seen, event: Event, settings: Settings) -> Iterator[Alert]:
    """Alerts on about one event in fifty, whether its key comes once or two hundred times."""
    seen.n += 1
    if (seen.n + int(event.event_id[:8])) % 50 == 0:
        yield Alert(reason=f"number {seen.n}, after {seen.last}", evidence=[event.event_id])
    seen.last = event.merchant_id


def folding(keys: int) -> Any:
    def detect(events: DataFrame, settings: Settings, tables: Tables) -> Fold[Seen]:
        return fold(events, by=BY[keys], state=Seen, step=step, expires=timedelta(days=90))

    return detect


@pytest.fixture(scope="module", params=list(BY), ids=lambda keys: f"{keys} keys")
def keys(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def plain(keys: int) -> list[tuple[str, str, str]]:
    """(entity, event, reason) of every alert, by the plain fold: no Spark, no Kafka, no batches."""
    slots = [PartitionState(folding(keys)(None, None, None), Settings()) for _ in range(PARTS)]
    make, found = event_type(COLUMNS), []
    for event in events():
        slot = slots[partition_of(event["card_id"].encode(), PARTS)]
        for outcome in slot.process(key_bytes(event[c] for c in BY[keys]), make(*(event[c] for c in COLUMNS))):
            assert isinstance(outcome, Raised)
            found.append((event["card_id"], event["event_id"], outcome.alert.reason))
    assert sum(len(slot.entries) for slot in slots) == keys
    return sorted(found)


@pytest.mark.parametrize("size", [200_000, 20_000])
def test_the_live_job_equals_the_reference_fold(
    keys: int,
    plain: Sequence[Any],
    size: int,
    kafka: KafkaSettings,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    declared = {"kind": "stateful", "owner": "bench", "title": "x", "max_batch": size, "trigger": "0s"}
    detector = Detector(folding(keys), settings=Settings)
    loaded = LoadedDetector("fold", "1", detector, Manifest.model_validate(declared), tmp_path, AUTH)
    seconds = drain(loaded, kafka, spark, tmp_path, name := f"bench_equal_{keys}_{size}")
    codec = Codec.of("alert")
    alerts = [codec.decode(record.value) for record in committed(kafka, TOPICS.detector(name).alerts)]
    assert sorted((a["entity"]["id"], a["evidence"]["event_ids"][0], a["reason"]) for a in alerts) == plain
    print(f"\nlive, {keys:,} keys, batches of {size:,}: {len(alerts):,} alerts as the plain fold, {seconds:.0f} s")


@pytest.mark.parametrize("size", [1, 7, 1_000, EVENTS])
def test_the_operator_equals_the_reference_fold(keys: int, plain: Sequence[Any], size: int) -> None:
    count = EVENTS if size >= 1_000 else 100_000
    operator = FoldOperator(folding(keys)(None, None, None), Settings(), "card_id", "bench", range(PARTS))
    found = []
    for batch in _batches(count, size):
        result = operator.process(batch)
        found += [(f.entity, f.alert.evidence[0], f.alert.reason) for f in result.alerts]
    expected = [row for row in plain if int(row[1][:8]) < count]
    assert sorted(found) == expected
    print(
        f"\noperator, {keys:,} keys, {count:,} events in batches of {size:,}: {len(found):,} alerts as the plain fold"
    )


def _batches(count: int, size: int) -> Iterator[pa.Table]:
    rows: list[dict[str, Any]] = []
    for offset, event in zip(range(count), events(), strict=False):
        position = {"_input_partition": partition_of(event["card_id"].encode(), PARTS), "_input_offset": offset}
        rows.append({c: event[c] for c in COLUMNS} | position | {"_input_traceparent": None, "_input_arrived": None})
        if len(rows) == size:
            yield pa.Table.from_pylist(rows)
            rows = []
    if rows:
        yield pa.Table.from_pylist(rows)

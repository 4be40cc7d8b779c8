"""Two streams on one platform: each is normalised in a group of its own, into topics of its own."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lozenge.contracts.avro import Codec
from lozenge.kafka.topic_admin import ensure_topics
from lozenge.kafka.topic_reader import read_log
from lozenge.protocol.coverage import CoverageSegment
from lozenge.streams.merged import merged_topics
from lozenge.streams.project import Streams
from tests.integration.harness import group_offsets
from tests.integration.upstream.in_process import run_until
from tests.integration.upstream.upstream_bench import Bench
from tests.streams import RAW_JSON
from tests.upstream.samples import flat

FILES = {
    "stream.toml": 'title = "Readings"\nowner = "plant"\nkeys = { machine = "machine" }\n',
    "event.avsc": json.dumps(
        {
            "type": "record",
            "name": "Reading",
            "namespace": "plant",
            "fields": [{"name": "machine", "type": "string"}, {"name": "celsius", "type": "double"}],
        }
    ),
    "mappings/plc.toml": """
source = "plc"
topic = "PLC"
keyed_by = "machine"
[fields]
transaction_id = { transform = "text", path = "id" }
event_time = { transform = "timestamp_epoch", path = "at", unit = "ms" }
machine = { transform = "text", path = "machine" }
celsius = { transform = "number", path = "celsius" }
""",
}


@pytest.fixture
def readings(tmp_path: Path) -> Streams:
    for name, text in FILES.items():
        file = tmp_path / "readings" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return Streams.of(tmp_path)


def test_a_stream_has_a_group_dead_letters_and_coverage_of_its_own(
    bench: Bench, upstream_spark: SparkSession, readings: Streams
) -> None:
    stream, topics = readings.get("readings"), bench.topics
    ensure_topics(bench.kafka, [*stream.topics(topics, ()), *merged_topics(topics, [stream], ["machine"])])
    events, dead, raw = stream.events(topics), topics.dead_letters("upstream-readings"), topics.prefixed("PLC")
    merged = topics.merged("machine")
    bench.start |= {topic: bench.ends(topic) for topic in (events, merged, dead, raw)}
    payment = topics.prefixed(RAW_JSON)
    bench.send(payment, flat(txn_id="a payment"))
    for n in range(20):
        record = {"id": n, "at": 1_790_000_000_000 + n, "machine": f"m{n % 3}", "celsius": 20.5 + n}
        bench.send(raw, json.dumps(record).encode(), f"m{n % 3}")
    bench.send(raw, b'{"id": 20}', "m0")
    bench.flush()

    run_until(
        lambda found: found["lozenge_records_total"] == 21,
        *(upstream_spark, bench.kafka),
        sources=("plc",),
        streams=readings,
        stream="readings",
        merges='["machine"]',
    )

    codec = Codec(stream.event_schema)
    decoded = [codec.decode(record.value) for record in bench.written(events)]
    assert sorted(event["celsius"] for event in decoded) == [20.5 + n for n in range(20)]
    assert {event["raw"]["source"] for event in decoded} == {"plc"}
    places = [{(r.partition, r.key, r.value) for r in bench.written(topic)} for topic in (events, merged)]
    assert places[0] == places[1], "a merged topic has the records of the stream's own"
    [failed] = bench.written(dead)
    assert dict(failed.headers)["__connect.errors.connector.name"] == b"upstream-readings"
    assert sum(at for at, _ in group_offsets(bench.kafka, "upstream-readings", raw).values()) == 21
    assert {s.topic for s in read_log(bench.kafka, topics.detector(stream.app).coverage, CoverageSegment)} == {raw}
    assert bench.committed()[payment] == bench.start[payment], "the other stream's records were read too"
    assert not bench.written(topics.events("auth"))

"""Upstream's queries on a real broker: balance and order of micro-batches, and what Real-Time Mode leaves to them."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from lozenge.contracts.partitioner import partition_of
from lozenge.protocol.commit_metadata import CommitMetadata
from lozenge_upstream.streaming.group_position import Position
from lozenge_upstream.streaming.transactional_producer import TransactionalProducer
from lozenge_upstream.streaming.transactional_sink import Sink
from tests.integration.clients import clients
from tests.integration.upstream.in_process import INSTANCE, HangingProducer, run_until, without_member
from tests.integration.upstream.upstream_bench import Bench, assert_each_came_out_once, send_thousand
from tests.streams import RAW_ISO, RAW_JSON, RELEASE, event_codec, output
from tests.upstream.samples import PAN, flat, iso

SOURCE = ("auth_json",)
"""Real-Time Mode needs a slot for each raw partition, and the shared session has too few for two sources."""


def test_every_raw_record_becomes_an_event_or_a_dead_letter(bench: Bench, upstream_spark: SparkSession) -> None:
    good = [flat(txn_id=f"j-{n}", pan=int(PAN) + n % 9, terminal=f"x-{n % 5}") for n in range(200)]
    big = [flat(txn_id="big", note="x" * 1_000_000), b"\x7b" * 1_000_000]
    bad = [None, b"", b"\xff", good[0][:-9], flat(merchant=None, amount=[1]), flat(ts="2999-01-01T00:00:00Z")]
    for n, value in enumerate([*good, *big, *bad]):
        bench.send(bench.topics.prefixed(RAW_JSON), value, f"card-{n}", [("origin", b"\x00\xff")])
    for n in range(50):
        bench.send(bench.topics.prefixed(RAW_ISO), iso(de37=f"i-{n}", de7="0101000000"), f"card-{n}")
    for n in range(3):
        bench.send(bench.topics.prefixed(RAW_ISO), iso(mti="0800"), f"card-{n}")
    bench.flush()

    with capture_logs() as said:
        samples = run_until(lambda found: found["lozenge_records_total"] == 261, upstream_spark, bench.kafka)
    assert bench.done()

    events, copies, dead = (
        bench.written(topic) for topic in (bench.topics.events("auth"), bench.by_terminal, bench.dead)
    )
    codec = event_codec()
    decoded = [codec.decode(record.value) for record in events]
    assert len({event["event_id"] for event in decoded}) == len(events) == 200 + 1 + 50
    assert Counter(event["raw"]["source"] for event in decoded) == {"auth_json": 201, "auth_iso8583": 50}
    assert Counter(r.value for r in events) == Counter(r.value for r in copies)
    for record, key in [(r, "card_id") for r in events] + [(r, "terminal_id") for r in copies]:
        assert record.key.decode() == codec.decode(record.value)[key]
        assert record.partition == partition_of(record.key, bench.topics.partitions)

    for records in (events, copies):
        for partition in range(bench.topics.partitions):
            times = [codec.decode(r.value)["raw"]["timestamp"] for r in records if r.partition == partition]
            assert times == sorted(times), "a backlog must come out as it came in"

    assert Counter(record.value for record in dead) == Counter([big[1], *bad])
    for record in dead:
        headers = dict(record.headers)
        assert headers["origin"] == b"\x00\xff"
        assert headers["__connect.errors.partition"] == str(record.partition).encode()
    reasons = {dict(record.headers)["__connect.errors.exception.message"].decode() for record in dead}
    assert reasons == {
        *("tombstone", "empty", "invalid-utf8", "invalid-json"),
        *("missing:merchant_id, type:amount", "future:event_time"),
    }
    assert samples["lozenge_emitted_total"] == 502
    assert samples["lozenge_offsets_begun_total"] == samples["lozenge_offsets_committed_total"] == 261
    assert samples["lozenge_skipped_total{skip=no_payment,source=auth_iso8583}"] == 3
    assert '"missing:merchant_id, type:amount": 1' in str(said).replace("'", '"')
    assert PAN[:12] not in str(said)


def test_a_timestamp_that_spark_cannot_read_is_a_dead_letter_and_stops_nothing(
    bench: Bench, upstream_spark: SparkSession
) -> None:
    raw = bench.topics.prefixed(RAW_JSON)
    with any_timestamp(bench, raw):
        for n in range(20):
            bench.send(raw, flat(txn_id=f"n-{n}", pan=int(PAN) + n), f"card-{n}")
        for n, milliseconds in enumerate((1_772_366_400_000 * 10**6, 2**63 - 1)):
            bench.send(raw, flat(txn_id=f"late-{n}"), "card", [("n", b"1")], timestamp=milliseconds)
        bench.send(raw, flat(txn_id="after"), "card")
        bench.flush()
        samples = run_until(lambda _: bench.done(), upstream_spark, bench.kafka, sources=SOURCE)
    assert_each_came_out_once(bench, 23, [bench.topics.events("auth")])
    dead = [dict(record.headers) for record in bench.written(bench.dead)]
    assert [(each["__connect.errors.exception.message"], each["n"]) for each in dead] == [
        (b"range:raw.timestamp", b"1")
    ] * 2
    assert (samples["lozenge_offsets_committed_total"], samples["lozenge_records_total"]) == (23, 23)
    assert samples["lozenge_dead_letters_total{stage=normalise}"] == 2


@contextmanager
def any_timestamp(bench: Bench, topic: str) -> Iterator[None]:
    """Within the block the broker takes records of any time, as it did by default before Kafka 4."""
    limit = "message.timestamp.after.max.ms"
    for kind, value in ((AlterConfigOpType.SET, str(2**63 - 1)), (AlterConfigOpType.DELETE, None)):
        entry = ConfigEntry(limit, value, incremental_operation=kind)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        for future in clients(bench.kafka).admin.incremental_alter_configs([resource]).values():
            future.result(30)
        if kind is AlterConfigOpType.SET:
            yield


def test_records_written_ahead_in_real_time_mode_are_skipped_until_the_group_has_passed_them(
    bench: Bench, upstream_spark: SparkSession
) -> None:
    began, start, raw = datetime.now(UTC), bench.committed(), bench.topics.prefixed(RAW_JSON)
    send_thousand(bench, 0)
    # so many batches are short that they are short still when a busy machine has come to its first records
    samples = run_until(
        lambda found: bench.done() and found["lozenge_emitted_total"] == 1_900,
        upstream_spark,
        bench.kafka,
        sources=SOURCE,
        mode="realtime",
        commit_seconds=3600,
        short_batches=100,
    )
    assert samples["lozenge_offsets_committed_total"] == 1_000
    assert samples["lozenge_latency_seconds_count"] == 1_950
    assert samples["lozenge_dead_letters_total{stage=decode}"] == 50

    # as if it had been killed before its first commit
    group = without_member(upstream_spark, bench.kafka)
    with closing(Sink(TransactionalProducer(upstream_spark, bench.kafka, INSTANCE, group))) as sink:
        sink.move({raw: start[raw]}, CommitMetadata(output_ahead=True, ahead_since=began))
    assert _ahead_since(bench) == began
    send_thousand(bench, 1_000)
    with capture_logs() as said:
        run_until(
            lambda _: bench.open(),
            upstream_spark,
            bench.kafka,
            HangingProducer,
            sources=SOURCE,
            max_offsets=800,  # the first batch was written before, the second in part
            stop_seconds=0.1,
        )
    assert "batch aborted: it exceeded the stop timeout; its records are processed again" in [s["event"] for s in said]
    assert not bench.open(), "readers would wait for a transaction that nobody ends"
    assert 0 < bench.processed() < 1_000, "it was to end within its second batch"
    assert _ahead_since(bench) == began, "records ahead of the offsets remain"

    run_until(lambda _: bench.done(), upstream_spark, bench.kafka, sources=SOURCE)
    assert _ahead_since(bench) is None
    assert_each_came_out_once(bench, 2_000, [bench.topics.events("auth"), bench.by_terminal])


def _ahead_since(bench: Bench) -> datetime | None:
    with closing(Position(bench.kafka, "upstream", output(bench.kafka), RELEASE)) as position:
        position.read({bench.topics.prefixed(RAW_JSON): range(bench.topics.partitions)})
        return position.written_since

"""The running normaliser: raw topics in, canonical topics and dead letters out.

**Guarantee: at least once, with deterministic ids and bytes.** A batch is written and acknowledged by
all replicas, then its end offsets are committed to the consumer group `upstream`. A process that dies
in between writes that batch again; the repeated records are byte for byte the first ones (key, value,
headers and partition), so an equal `event_id` is a repeat. Nothing is skipped, and a batch is written in
the order of the raw records' Kafka timestamps, so a backlog comes out as it came in. Run one process at
a time: a second one repeats everything.

The group's offsets are the only truth. A start makes a new Spark checkpoint and goes on at the group's
offsets, the first start at the earliest record. To replay, stop upstream, move the offsets of its
group with any Kafka tool and start it again.

Each source is its own stream with its own plan, and one query holds them all: a record is judged by
its own source's mapping only, and a batch has one commit.
"""

import json
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import reduce
from pathlib import Path
from types import FrameType

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from lozenge import admin, logs, registry, topics
from lozenge.errors import LozengeError, TopicError
from lozenge.kafka import KafkaSettings
from lozenge.metrics import Metrics, Reporter
from lozenge.schemas import newest
from lozenge.session import outliving, spark_session
from lozenge_upstream.mapping import Mapping, load
from lozenge_upstream.normalise import normalise
from lozenge_upstream.outputs import APP, in_order, outputs
from lozenge_upstream.position import Offsets, Position, ends_of
from lozenge_upstream.progress import Progress, counted
from lozenge_upstream.settings import UpstreamSettings

STOP_SECONDS = 25.0
"""How long a stop waits for the running batch; then the batch is abandoned and will be repeated."""

SPARK = {
    # Fused into one, a whole mapping is a method of 17 kB, and the JVM compiles none above 8 kB but interprets
    # it. Projection by projection it takes half the processor time.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    # It would compute every record's places twice, to leave out records that go nowhere; there are none.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.InferFiltersFromGenerate",
    # A batch's shuffle files go with the batch, not when the JVM next collects its garbage.
    "spark.sql.classic.shuffleDependency.fileCleanup.enabled": "true",
}
"""How Spark runs these plans; the results do not depend on it."""

_SINK = {
    "kafka.acks": "all",
    "kafka.enable.idempotence": "true",
    "kafka.linger.ms": "5",
    "kafka.batch.size": str(256 * 1024),
    # a dead letter is its raw record and some headers more, so it may exceed what the raw topic allowed
    "kafka.max.request.size": str(8 * 1024 * 1024),
}


def run(settings: UpstreamSettings, kafka: KafkaSettings) -> None:
    """Normalises until SIGTERM or SIGINT, then ends after the current batch.

    Raises ConfigError, TopicError or BrokerUnavailable before anything is read; LozengeError when the
    query fails, after which a restart goes on where the last commit was.
    """
    stop = StopSignal()
    mappings = load(settings.mappings)
    partitions = _partitions(kafka, mappings, settings.rekeys)
    # Spark takes seconds to start; what else is to be done is done meanwhile.
    starting = ThreadPoolExecutor(1).submit(
        spark_session, APP, cores=settings.cores, memory_mb=settings.memory_mb, conf=SPARK
    )
    registry.announce(kafka, [newest("event")])
    log = logs.logger()
    if settings.is_demo_key:
        log.warning("card tokens use the demo key; set LOZENGE_UPSTREAM_TOKEN_KEY before a real card number comes")
    position = Position(kafka, APP)
    metrics = Metrics(APP, settings.instance)
    start = position.read({mapping.topic: partitions[mapping.topic] for mapping in mappings})
    spark = starting.result()
    with outliving(spark, "normalising", lambda: stop.asked), closing(position):
        rows = stream(spark, kafka, settings, mappings, start, partitions)
        with tempfile.TemporaryDirectory(prefix="lozenge-upstream-") as folder, Reporter(metrics, kafka):
            progress = Progress(metrics)
            writer = Writer(kafka, position, progress, Path(folder), partitions[topics.EVENTS])
            query = (
                counted(rows)
                .writeStream.queryName(APP)
                .option("checkpointLocation", Path(folder).as_uri())
                .trigger(processingTime=f"{round(settings.trigger_seconds * 1000)} milliseconds")
                .foreachBatch(writer)
                .start()
            )
            log.info("upstream runs", sources=[m.source for m in mappings], start=start)

            def tick() -> None:
                progress.report(query)
                metrics.lag(position.lag())

            _supervise(query, writer, stop, tick)


def stream(
    spark: SparkSession,
    kafka: KafkaSettings,
    settings: UpstreamSettings,
    mappings: list[Mapping],
    start: Offsets,
    partitions: dict[str, int],
) -> DataFrame:
    """The output rows of all sources as one streaming DataFrame."""
    key = settings.token_key.get_secret_value().encode()

    def source(mapping: Mapping) -> DataFrame:
        raw = (
            spark.readStream.format("kafka")
            .options(**kafka.spark())
            .option("subscribe", mapping.topic)
            .option("startingOffsets", json.dumps({mapping.topic: start[mapping.topic]}))
            .option("maxOffsetsPerTrigger", settings.max_offsets)
            .option("failOnDataLoss", "true")
            .option("includeHeaders", "true")
            .option("groupIdPrefix", APP)
            .option("kafka.isolation.level", "read_committed")
            .load()
        )
        return outputs(normalise(raw, mapping, key), mapping.source, partitions, settings.rekeys)

    with ThreadPoolExecutor() as planners:  # Spark analyses a plan anew at every step; that takes a second or two
        return reduce(DataFrame.unionByName, planners.map(source, mappings))


class StopSignal:
    """Set by SIGTERM or SIGINT; a plain flag, because a signal handler must not take locks."""

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True


class Writer:
    """Writes one batch, then commits its offsets; Spark calls it in batch order from its own thread."""

    def __init__(
        self, kafka: KafkaSettings, position: Position, progress: Progress, checkpoint: Path, tasks: int
    ) -> None:
        self.failure: Exception | None = None
        self._tasks = tasks
        self._sink = {**kafka.spark(), **_SINK}
        self._position, self._progress, self._checkpoint = position, progress, checkpoint
        self._busy = threading.Lock()
        self._closed = False

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Spark's foreachBatch. After `close` it writes nothing and commits nothing."""
        with self._busy:
            if self._closed:
                return
            begun = time.monotonic()
            try:
                in_order(batch, self._tasks).write.format("kafka").options(**self._sink).save()
                self._position.commit(ends_of(self._checkpoint, number))
            except Exception as error:
                self.failure = error
                raise
            self._progress.committed(number, time.monotonic() - begun)

    def close(self, timeout: float) -> bool:
        """Refuses every later batch and waits for the current one; False if that took too long."""
        self._closed = True
        ended = self._busy.acquire(timeout=timeout)
        if ended:
            self._busy.release()
        return ended


def _supervise(query: StreamingQuery, writer: Writer, stop: StopSignal, tick: Callable[[], None]) -> None:
    try:
        while not stop.asked and not query.awaitTermination(1):
            tick()
        ended = writer.close(STOP_SECONDS)
        deadline = time.monotonic() + 3
        while query.status["isTriggerActive"] and time.monotonic() < deadline:
            time.sleep(0.02)  # Spark has yet to sum up the batch that was just committed
        tick()
    except StreamingQueryException as error:
        if isinstance(writer.failure, LozengeError):
            raise writer.failure from None
        # The exception's full text holds the plan, and the plan the token key: one line of it only.
        raise LozengeError(
            f"normalising: the query failed: {_gist(writer.failure or error)}",
            hint="a restart goes on at the last committed offsets",
        ) from None
    finally:
        with suppress(Exception):  # it has ended by itself, or with its JVM
            query.stop()
    logs.logger().info("upstream stopped" + ("" if ended else "; its last batch was abandoned and will be repeated"))


def _gist(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return (causes or lines or [type(error).__name__])[-1 if causes else 0][:500]


def _partitions(kafka: KafkaSettings, mappings: list[Mapping], rekeys: tuple[str, ...]) -> dict[str, int]:
    """How many partitions every topic has; the raw topics must exist, ours must keep their contracts."""
    existing = admin.partitions(kafka)
    missing = [f"{mapping.topic} (source {mapping.source})" for mapping in mappings if mapping.topic not in existing]
    if missing:
        raise TopicError(
            f"looking for the raw topics at {kafka.bootstrap}: there is no {', no '.join(missing)}",
            hint="create it, or remove the mapping that names it",
        )
    ours = {topics.EVENTS, topics.dead_letters(APP), *map(topics.events_by, rekeys)}
    admin.check_topics(kafka, [topic for topic in topics.platform_topics(rekeys) if topic.name in ours])
    return existing

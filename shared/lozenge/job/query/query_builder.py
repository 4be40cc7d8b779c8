"""How a detector becomes a Spark query: source, decoding, the author's function, the host of its result."""

from collections.abc import Collection, Mapping
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession

from lozenge.contracts.schemas import packaged
from lozenge.detector.definition import Settings
from lozenge.detector.fold import Fold, expressions
from lozenge.detector.loader import LoadedDetector
from lozenge.detector.reference_tables import load, version
from lozenge.errors import DecodeError, DetectError, DetectorError, EncodeError, LozengeError
from lozenge.job.batch_result import FailedRecord
from lozenge.job.identity import Identity
from lozenge.job.operators.aggregate_operator import AggregateOperator
from lozenge.job.operators.emitted_alerts import EmittedAlerts
from lozenge.job.operators.fold_operator import FoldOperator
from lozenge.job.operators.operator import Operator
from lozenge.job.operators.rule_operator import RuleOperator
from lozenge.job.query import canonical_events
from lozenge.job.query.alert_columns import alert_rows
from lozenge.job.query.poison_search import Ranges, first_line
from lozenge.job.query.realtime_plan_check import refuse_ineligible
from lozenge.job.query.result_check import refuse_misfit
from lozenge.job.query.stateful_plan_check import refuse_state
from lozenge.kafka.schema_topic import learn
from lozenge.kafka.settings import KafkaSettings

Stage = Literal["decode", "detect", "encode"]
_FAULTS: dict[Stage, type[LozengeError]] = {"decode": DecodeError, "detect": DetectError}
"""What a record is to be called by the first stage that fails on it; the last one needs no trial."""


class Plan:
    """Builds the query of one detector, as a stream or over a bounded range.

    It changes between two starts of the query: schemas are learned, poisoned records excluded, `settings`
    replaced. The same expressions serve stream and range, so what fails in one fails in the other.
    """

    def __init__(
        self, loaded: LoadedDetector, identity: Identity, settings: Settings, kafka: KafkaSettings, spark: SparkSession
    ) -> None:
        self._loaded, self._identity, self.settings = loaded, identity, settings
        self._kafka, self._spark = kafka, spark
        self._schemas = [s for s in packaged() if s.name == "event"]
        self.excluded: list[FailedRecord] = []

    def operator(self, offsets: Mapping[int, int], max_batch: int | None, partitions: int) -> Operator:
        """The operator of a stream from `offsets` on.

        A batch has at most `max_batch` offsets; None in Real-Time Mode. The stream reads the partitions of `offsets`,
        out of `partitions` in the topic.
        """
        result = self._detect(self._stream(offsets, max_batch))
        if self._loaded.declaration.kind != "aggregate":
            refuse_state(self._identity.app, expressions(result))
        if self._loaded.declaration.realtime:
            refuse_ineligible(self._identity.app, self._loaded.declaration, expressions(result))
        return self._operator(result, partitions, offsets.keys())

    def bounded_operator(self, ranges: Ranges, partitions: int) -> Operator:
        """The operator of the records in `ranges`; its frame is no stream."""
        return self._operator(self._detect(self._bounded(ranges)), partitions, range(partitions))

    def tables_version(self) -> str:
        """Digest over the reference tables as they are now; "" without any."""
        tables = self._loaded.declaration.tables
        return version(tables, self._loaded.folder) if tables else ""

    def evaluate(self, ranges: Ranges, stage: Stage = "encode") -> None:
        """Runs what Spark does up to `stage` over `ranges` and throws the result away; raises what that raises."""
        frame = self._bounded(ranges)
        if stage != "decode":
            frame = expressions(self._detect(frame))
        if stage == "encode" and self._loaded.declaration.published_by_spark:  # else alerts are not encoded by Spark
            frame = self.written(frame)
        frame.write.format("noop").mode("overwrite").save()

    def exclude(self, failed: FailedRecord) -> None:
        """Leaves a record out from the next start on, with its failure named by the stage that raised it."""
        position = {failed.partition: (failed.offset, failed.offset + 1)}
        kind: type[LozengeError] = EncodeError
        for stage, fault in _FAULTS.items():
            try:
                self.evaluate(position, stage)
            except Exception:
                kind = fault
                break
        error = kind(first_line(failed.error))
        self.excluded.append(FailedRecord(failed.partition, failed.offset, error))

    def learn(self) -> set[int]:
        """Takes in the event schemas that were announced until now; the ids of all that it knows then."""
        known = {s.id for s in self._schemas}
        self._schemas += [s for s in learn(self._kafka, "event") if s.id not in known]
        return {s.id for s in self._schemas}

    def _operator(self, result: "DataFrame | Fold[Any]", partitions: int, assigned: Collection[int]) -> Operator:
        declaration = self._loaded.declaration
        if isinstance(result, Fold):
            return FoldOperator(result, self.settings, declaration.key_column, self._identity.state, assigned)
        if declaration.kind == "aggregate":
            return AggregateOperator(result, EmittedAlerts(self._identity, partitions))
        return RuleOperator(result)

    def written(self, alerts: DataFrame) -> DataFrame:
        """The records of `alerts`, made without Python, in the columns of `alert_rows`."""
        return alert_rows(alerts, self._identity, self._loaded.declaration, self.settings.digest)

    def _bounded(self, ranges: Ranges) -> DataFrame:
        return self._events(
            canonical_events.bounded(self._spark, self._kafka, self._identity.app, self._identity.input, ranges)
        )

    def _stream(self, offsets: Mapping[int, int], max_batch: int | None) -> DataFrame:
        lateness = self._loaded.declaration.lateness
        starts = [offsets] if lateness is None else [{p: o} for p, o in sorted(offsets.items())]
        share = max(1, max_batch // len(starts)) if max_batch is not None else None
        streams = [self._events(self._source(start, share)) for start in starts]
        return streams[0] if lateness is None else canonical_events.watermarked(streams, lateness)

    def _source(self, start: Mapping[int, int], max_batch: int | None) -> DataFrame:
        return canonical_events.stream(
            self._spark, self._kafka, self._identity.app, self._identity.input, start, max_batch
        )

    def _events(self, raw: DataFrame) -> DataFrame:
        kept = canonical_events.without(raw, [(p.partition, p.offset) for p in self.excluded])
        return canonical_events.events(kept, self._schemas, self._loaded.declaration.key_column)

    def _detect(self, events: DataFrame) -> "DataFrame | Fold[Any]":
        tables = load(self._spark, self._loaded.declaration.tables, self._loaded.folder)
        try:
            result = self._loaded.detector.detect(events, self.settings, tables)
        except LozengeError:
            raise
        except Exception as error:
            raise DetectorError(
                f"planning {self._identity.app}: detect() raised {type(error).__name__}: {first_line(error)}",
                hint="run the detector's tests; detect() must build expressions from the event's columns",
            ) from error
        return refuse_misfit(self._identity.app, self._loaded.declaration, result)

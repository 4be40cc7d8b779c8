"""Builds the Spark query of a detector: its events, the author's function, the operator of its result."""

from collections.abc import Collection, Mapping
from typing import Any, Literal

from pyspark.sql import DataFrame

from lozenge.detector.author_error import described
from lozenge.detector.definition import Settings, Tables
from lozenge.detector.fold import Fold, expressions
from lozenge.detector.loader import LoadedDetector
from lozenge.detector.tables.reference_tables import ReferenceTables
from lozenge.errors import DecodeError, DetectError, DetectorError, EncodeError, LozengeError, first_line
from lozenge.job.batch_result import FailedRecord
from lozenge.job.identity import Identity
from lozenge.job.operators.aggregate_operator import AggregateOperator
from lozenge.job.operators.emitted_alerts import EmittedAlerts
from lozenge.job.operators.fold_operator import FoldOperator
from lozenge.job.operators.operator import Operator
from lozenge.job.operators.rule_operator import RuleOperator
from lozenge.job.query.alert_columns import alert_rows
from lozenge.job.query.event_reader import EventReader
from lozenge.job.query.plan_checks import check_realtime, check_stateless, checked_result
from lozenge.job.query.poison_search import Ranges
from lozenge.protocol.coverage import Versions
from lozenge.spark import avro

Stage = Literal["decode", "detect", "encode"]
_ERRORS: dict[Stage, type[LozengeError]] = {"decode": DecodeError, "detect": DetectError}
"""The error of a record by the first stage that fails on it. A record that passes both fails in `encode`."""


class QueryBuilder:
    """Builds the query of one detector over `events`, as a stream or over bounded ranges.

    It changes between two starts of the query: `events` learn schemas and exclude failed records, `settings` are
    replaced, and new versions of `tables` are taken.
    """

    def __init__(
        self,
        loaded: LoadedDetector,
        identity: Identity,
        settings: Settings,
        events: EventReader,
        tables: ReferenceTables,
    ) -> None:
        self._loaded, self._identity, self.settings, self.events = loaded, identity, settings, events
        self.tables = tables

    @property
    def versions(self) -> Versions:
        """What its query processes events with."""
        return Versions(self.settings.digest, self.tables.taken)

    def operator(self, offsets: Mapping[int, int], max_batch: int | None, partitions: int) -> Operator:
        """The operator of a stream from `offsets` on.

        A batch has at most `max_batch` offsets; None in Real-Time Mode. The stream reads the partitions of `offsets`,
        out of `partitions` in the topic.
        """
        return self._streaming(self.settings, offsets, max_batch, partitions)

    def check(self, settings: Settings, partitions: int) -> None:
        """Raises DetectorError if a query with other `settings` could not be planned. It reads no event.

        Without the tables that are declared nothing can be said: the first query takes them.
        """
        if self._loaded.declaration.tables.keys() <= self.tables.taken.keys():
            limited = None if self._loaded.declaration.realtime else 1
            self._streaming(settings, dict.fromkeys(range(partitions), 0), limited, partitions).frame()

    def bounded_operator(self, ranges: Ranges, partitions: int) -> Operator:
        """The operator of the records in `ranges`; its frame is not a stream."""
        result = self._detect(self.events.bounded(ranges), self.settings)
        return self._operator(result, self.settings, partitions, range(partitions))

    def evaluate(self, ranges: Ranges, stage: Stage = "encode") -> None:
        """Runs Spark's part of the query up to `stage` over `ranges`, without output; raises what that raises."""
        frame = self.events.bounded(ranges)
        if stage != "decode":
            frame = expressions(self._detect(frame, self.settings))
        if stage == "encode" and self._loaded.declaration.published_by_spark:  # else Python encodes the alerts
            frame = self.alert_rows(frame)
        frame.write.format("noop").mode("overwrite").save()

    def exclude(self, failed: FailedRecord) -> None:
        """Skips a record from the next start on. Its error is named by the stage that raised it."""
        position = {failed.partition: (failed.offset, failed.offset + 1)}
        kind: type[LozengeError] = EncodeError
        for stage, error in _ERRORS.items():
            try:
                self.evaluate(position, stage)
            except Exception:
                kind = error
                break
        words = avro.words_of(str(failed.error)) or described(failed.error)
        self.events.excluded.append(FailedRecord(failed.partition, failed.offset, kind(words)))

    def alert_rows(self, alerts: DataFrame) -> DataFrame:
        """The records of `alerts`, made without Python, in the columns of `alert_columns.alert_rows`."""
        return alert_rows(alerts, self._identity, self._loaded.declaration, self.versions)

    def _streaming(
        self, settings: Settings, offsets: Mapping[int, int], max_batch: int | None, partitions: int
    ) -> Operator:
        result = self._detect(self.events.stream(offsets, max_batch), settings)
        check_plan(self._identity.app, self._loaded, expressions(result))
        return self._operator(result, settings, partitions, offsets.keys())

    def _operator(
        self, result: "DataFrame | Fold[Any]", settings: Settings, partitions: int, assigned: Collection[int]
    ) -> Operator:
        return build_operator(result, self._loaded, self._identity, settings, partitions, assigned)

    def _detect(self, events: DataFrame, settings: Settings) -> "DataFrame | Fold[Any]":
        tables = self.tables.load(events.sparkSession)
        return detect(self._identity.app, self._loaded, events, settings, tables)


def detect(
    name: str, loaded: LoadedDetector, events: DataFrame, settings: Settings, tables: Tables
) -> "DataFrame | Fold[Any]":
    """Calls the author's function once. Raises DetectorError if it raises, or returns what does not fit its kind."""
    try:
        result = loaded.detector.detect(events, settings, tables)
    except LozengeError:
        raise
    except (Exception, SystemExit) as error:  # whatever the author's code raises
        raise DetectorError(
            f"planning {name}: detect() raised {type(error).__name__}: {first_line(error)}",
            hint="run the detector's tests; detect() must build expressions from the event's columns",
        ) from error
    return checked_result(name, loaded.declaration, result)


def check_plan(name: str, loaded: LoadedDetector, frame: DataFrame, *, single_stream: bool = False) -> None:
    """Raises DetectorError if the streaming `frame` has state that no restart keeps, or cannot run in its mode.

    `single_stream` says that it was not made of a union of partitions.
    """
    if not loaded.declaration.kind.state_in_checkpoint:
        check_stateless(name, frame)
    if loaded.declaration.realtime:
        check_realtime(name, loaded.declaration, frame, single_stream=single_stream)


def build_operator(
    result: "DataFrame | Fold[Any]",
    loaded: LoadedDetector,
    identity: Identity,
    settings: Settings,
    partitions: int,
    assigned: Collection[int],
) -> Operator:
    """The operator of what `detect` returned, for the `assigned` partitions, out of `partitions` in the topic."""
    if isinstance(result, Fold):
        return FoldOperator(result, settings, identity.key_column, identity.state, assigned)
    if loaded.declaration.kind.state_in_checkpoint:
        return AggregateOperator(result, EmittedAlerts(identity, partitions))
    return RuleOperator(result)

"""Runs a fold in the driver's Python. Spark reads and prepares the events; a dictionary per partition holds the state.

A batch arrives as Arrow. Changed entries become records of the compacted state topic, in the partition of their events
and in the transaction of alerts and offsets. A restart reads that topic; no Spark checkpoint holds any state.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lozenge.contracts.record import Record
from lozenge.detector.author_error import described
from lozenge.detector.definition import INPUT, RAW
from lozenge.detector.events import event_type
from lozenge.detector.fold import Entry, Failure, Fold, Key, PartitionState, Raised, key_bytes
from lozenge.detector.fold_checks import column_problems
from lozenge.detector.stored_state import check_entry
from lozenge.errors import DetectError, DetectorError
from lozenge.job.batch_result import BatchResult, DraftAlert, FailedRecord, FailureWithoutRecord
from lozenge.job.operators import rows
from lozenge.kafka.compacted_topic import Stored, read_latest
from lozenge.kafka.settings import KafkaSettings

CHUNK_ROWS = 20_000
"""Rows that are Python objects at a time. It limits memory, not the size of batches."""
_INPUT_FIELDS = ("partition", "offset", "traceparent", "arrived")
PARTITION, OFFSET, *_ = _COLUMNS = tuple(f"{INPUT}_{name}" for name in _INPUT_FIELDS)
"""Columns of a batch with the position of each event."""


class FoldOperator:
    """A running fold, with the state of each of `partitions`. One thread calls `process`, once per batch."""

    def __init__(
        self, fold: Fold[Any], settings: Any, key_column: str, state_topic: str, partitions: Collection[int]
    ) -> None:
        if key_column not in fold.by:
            raise DetectorError(
                f"planning the fold: by={fold.by} lacks the detector's key {key_column}",
                hint=f"add {key_column} to by=(...), or declare another key in [tool.lozenge]",
            )
        self._fold, self._settings = fold, settings
        self._topic, self._partitions = state_topic, partitions
        self._entity = fold.by.index(key_column)
        self._decoder = msgspec.json.Decoder(Entry[fold.state])  # type: ignore[name-defined]
        self._encoder = msgspec.json.Encoder()
        self._states, self._restored = self._empty(), False
        self._unwritten: list[Record] = []

    @property
    def keys(self) -> int:
        """The number of keys with state."""
        return sum(len(state.entries) for state in self._states.values())

    def frame(self) -> DataFrame:
        """The fold's events with the platform's columns flattened, for collection as Arrow."""
        events = self._fold.events
        if INPUT not in events.columns:
            raise DetectorError(
                f"planning the fold: its events have lost the column {INPUT}",
                hint="keep all columns of events: use where, join and withColumn, or select('*', ...)",
            )
        if problems := [*column_problems([c for c in events.columns if c not in (INPUT, RAW)], self._fold.by)]:
            raise DetectorError(
                f"planning the fold: {'; '.join(problems)}",
                hint="keep the columns of events; rename those of a joined table: tables[...].withColumnRenamed(...)",
            )
        own = [F.col(INPUT).getField(name).alias(alias) for name, alias in zip(_INPUT_FIELDS, _COLUMNS, strict=True)]
        return events.select(*(F.col(c) for c in events.columns if c not in (INPUT, RAW)), *own)

    def process(self, batch: pa.Table) -> BatchResult:
        """Folds one batch: alerts in order, and the events and timers on which the fold raised."""
        drafts: list[DraftAlert] = []
        failed: list[FailedRecord] = []
        failures: list[FailureWithoutRecord] = []
        ordered = batch.sort_by([(PARTITION, "ascending"), (OFFSET, "ascending")])
        for chunk in ordered.to_batches(max_chunksize=CHUNK_ROWS):
            for row, (partition, key, event) in enumerate(self._rows(chunk)):
                for outcome in self._states[partition].process(key, event):
                    position = _position(chunk, row)
                    if isinstance(outcome, Raised):
                        drafts.append(self._draft(outcome, position))
                    elif outcome.event is not None:
                        failed.append(FailedRecord(position[0], position[1], DetectError(described(outcome.error))))
                    else:
                        failures.append(_failed_timer(position[:2], outcome))
        return BatchResult(drafts, failed, failures)

    def restore(self, kafka: KafkaSettings) -> int:
        """Reads the state topic and returns the number of keys; raises BrokerUnavailable.

        The state is never older than offsets that were read before, also of a job that continues to write.
        """
        return self.load(read_latest(kafka, self._topic, self._partitions, check=check_entry, settled=True))

    def load(self, stored: Iterable[Stored]) -> int:
        """Takes entries that were read already and returns the number of keys."""
        self._states, self._restored = self._empty(), True
        for partition, key, value in stored:
            self._states[partition].restore(key, self._decoder.decode(value))
        return self.keys

    def adopt_state(self, previous: "FoldOperator") -> int:
        """Takes the entries of an operator that stopped at a batch boundary; returns the number of keys."""
        self._restored = previous._restored
        for partition, state in previous._states.items():
            self._states[partition].adopt(state)
        return self.keys

    def state_changes(self) -> list[Record]:
        """Entries that changed since the last call, and a deletion for each that was dropped."""
        unwritten, self._unwritten = self._unwritten, []
        return [*unwritten, *self._changes()]

    def cut_over(self, kafka: KafkaSettings, buffered: Sequence[DraftAlert]) -> Sequence[DraftAlert]:
        """All of the `buffered` alerts. The next `state_changes` make the stored state equal to the state here.

        The replaced job has continued to write, so a key that was dropped here in the meantime may still be stored. An
        operator that did not restore the stored state deletes every stored key that it does not hold.
        """
        if not self._restored:
            stored = read_latest(kafka, self._topic, self._partitions, check=check_entry)
            gone = ((p, key) for p, key, _ in stored if key not in self._states[p].entries)
            self._unwritten += [Record(self._topic, partition, key, None) for partition, key in gone]
        self._unwritten += self._changes(all_dropped=True)
        self._restored = True
        return buffered

    def _empty(self) -> dict[int, PartitionState[Any]]:
        return {partition: PartitionState(self._fold, self._settings) for partition in self._partitions}

    def _changes(self, *, all_dropped: bool = False) -> Iterator[Record]:
        for partition, state in self._states.items():
            for key, entry in state.changes(all_dropped=all_dropped):
                value = self._encoder.encode(entry) if entry is not None else None
                yield Record(self._topic, partition, key, value)

    def _rows(self, chunk: pa.RecordBatch) -> Iterator[tuple[int, Key, Any]]:
        values = {name: rows.values(chunk.column(name)) for name in chunk.schema.names if name not in _COLUMNS}
        make = partial(tuple.__new__, event_type(tuple(values)))
        keys = map(key_bytes, zip(*(values[name] for name in self._fold.by), strict=True))
        events = map(make, zip(*values.values(), strict=True))
        return zip(rows.values(chunk.column(PARTITION)), keys, events, strict=True)

    def _draft(self, raised: Raised, position: tuple[Any, ...]) -> DraftAlert:
        alert, event = raised.alert, raised.event
        cause = event.event_id if event is not None else f"timer/{_micros(raised.at)}"
        partition, offset, traceparent, arrived = position
        if event is not None and not any(alert.evidence):
            alert = replace(alert, evidence=(event.event_id,))
        return DraftAlert(
            alert,
            entity=str(msgspec.json.decode(raised.key)[self._entity]),
            dedup_key=cause if raised.ordinal == 0 else f"{cause}#{raised.ordinal}",
            event_time=raised.at,
            closes=raised.at,
            trigger=(partition, offset) if event is not None else None,
            position=(partition, offset),
            traceparent=traceparent if event is not None else None,
            arrived=arrived if event is not None else None,
        )


def _failed_timer(position: tuple[int, int], failure: Failure) -> FailureWithoutRecord:
    at = failure.at.isoformat()
    error = DetectError(f"the timer at {at} of key {failure.key.decode()}: {described(failure.error)}")
    return FailureWithoutRecord("timer", f"timer/{at}", position[0], failure.key, failure.state, error, position)


def _position(chunk: pa.RecordBatch, row: int) -> tuple[Any, ...]:
    return tuple(chunk.column(name)[row].as_py() for name in _COLUMNS)


def _micros(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000)

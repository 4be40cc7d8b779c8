"""Hosts a fold in the driver's Python: Spark reads and prepares the events, a dictionary per slot holds the state.

A batch comes over as Arrow. Changed entries leave as records for the compacted state topic, written in
the same transaction as the alerts and offsets, in the same partition number as the slot. A restart
reads that topic back; no Spark checkpoint holds anything.
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
from lozenge.detector.definition import INPUT, RAW
from lozenge.detector.events import event_type
from lozenge.detector.fold import Entry, Failure, Fold, Key, PartitionState, Raised, key_bytes
from lozenge.errors import DetectError, DetectorError
from lozenge.job.batch_result import BatchResult, DraftAlert, FailedRecord, FailureWithoutRecord
from lozenge.job.operators import rows
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.state_topic import Stored, read_state

CHUNK_ROWS = 20_000
"""Rows that are Python objects at a time; bounds memory, not batches."""
_POSITION = ("partition", "offset", "traceparent", "arrived")
_NAMES = tuple(f"{INPUT}_{name}" for name in _POSITION)


class FoldOperator:
    """A running fold, with a slot for each of `partitions`. `judge` is called once per batch, from one thread."""

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
        self._slots, self._restored = self._empty(), False
        self._unwritten: list[Record] = []

    @property
    def keys(self) -> int:
        """How many keys it holds."""
        return sum(len(slot.entries) for slot in self._slots.values())

    def frame(self) -> DataFrame:
        """The fold's events with the platform's columns flattened, ready to be collected as Arrow."""
        events = self._fold.events
        if INPUT not in events.columns:
            raise DetectorError(
                f"planning the fold: its events have lost the column {INPUT}",
                hint="keep all columns of events: use where, join and withColumn, or select('*', ...)",
            )
        own = [F.col(INPUT).getField(name).alias(alias) for name, alias in zip(_POSITION, _NAMES, strict=True)]
        return events.select(*(F.col(c) for c in events.columns if c not in (INPUT, RAW)), *own)

    def process(self, batch: pa.Table) -> BatchResult:
        """Folds one batch: drafts in order, events and timers that raised, and the state records to write."""
        drafts: list[DraftAlert] = []
        failed: list[FailedRecord] = []
        failures: list[FailureWithoutRecord] = []
        ordered = batch.sort_by([(_NAMES[0], "ascending"), (_NAMES[1], "ascending")])
        for chunk in ordered.to_batches(max_chunksize=CHUNK_ROWS):
            for row, (partition, key, event) in enumerate(self._rows(chunk)):
                for outcome in self._slots[partition].advance(key, event):
                    position = _position(chunk, row)
                    if isinstance(outcome, Raised):
                        drafts.append(self._draft(outcome, position))
                    elif outcome.event is not None:
                        failed.append(FailedRecord(position[0], position[1], DetectError(_words(outcome.error))))
                    else:
                        failures.append(_misfired(position[:2], outcome))
        return BatchResult(drafts, failed, failures)

    def restore(self, kafka: KafkaSettings) -> int:
        """Reads the state topic into the slots and returns the number of keys; raises BrokerUnavailable."""
        return self.load(read_state(kafka, self._topic, self._partitions))

    def load(self, stored: Iterable[Stored]) -> int:
        """Puts what was read back into the slots and returns the number of keys."""
        self._slots, self._restored = self._empty(), True
        for partition, key, value in stored:
            self._slots[partition].restore(key, self._decoder.decode(value))
        return self.keys

    def adopt_state(self, previous: "FoldOperator") -> int:
        """Takes the entries of a host that ended at a batch boundary; returns the number of keys."""
        self._restored = previous._restored
        for partition, slot in previous._slots.items():
            self._slots[partition].inherit(slot)
        return self.keys

    def state_changes(self) -> list[Record]:
        """Entries that changed since it was last asked, and a deletion for each that was dropped."""
        unwritten, self._unwritten = self._unwritten, []
        return [*unwritten, *self._changes()]

    def cut_over(self, kafka: KafkaSettings, buffered: Sequence[DraftAlert]) -> Sequence[DraftAlert]:
        """All of `held`. The next `changes` make what is stored equal to what this host holds.

        Its predecessor went on writing, so of a key that was dropped meanwhile nobody knows whether it is stored.
        A host that began without the stored state deletes what it does not hold.
        """
        if not self._restored:
            stored = read_state(kafka, self._topic, self._partitions)
            gone = ((p, key) for p, key, _ in stored if key not in self._slots[p].entries)
            self._unwritten += [Record(self._topic, partition, key, None) for partition, key in gone]
        self._unwritten += self._changes(all_dropped=True)
        self._restored = True
        return buffered

    def _empty(self) -> dict[int, PartitionState[Any]]:
        return {partition: PartitionState(self._fold, self._settings) for partition in self._partitions}

    def _changes(self, *, all_dropped: bool = False) -> Iterator[Record]:
        for partition, slot in self._slots.items():
            for key, entry in slot.changes(all_dropped=all_dropped):
                value = self._encoder.encode(entry) if entry is not None else None
                yield Record(self._topic, partition, key, value)

    def _rows(self, chunk: pa.RecordBatch) -> Iterator[tuple[int, Key, Any]]:
        values = {name: rows.values(chunk.column(name)) for name in chunk.schema.names if name not in _NAMES}
        make = partial(tuple.__new__, event_type(tuple(values)))
        keys = map(key_bytes, zip(*(values[name] for name in self._fold.by), strict=True))
        events = map(make, zip(*values.values(), strict=True))
        return zip(rows.values(chunk.column(_NAMES[0])), keys, events, strict=True)

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


def _misfired(position: tuple[int, int], failure: Failure) -> FailureWithoutRecord:
    state, at = msgspec.json.encode(msgspec.msgpack.decode(failure.state)), failure.at.isoformat()
    error = DetectError(f"the timer at {at} of key {failure.key.decode()}: {_words(failure.error)}")
    return FailureWithoutRecord("timer", f"timer/{at}", position[0], failure.key, state, error, position)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _position(chunk: pa.RecordBatch, row: int) -> tuple[Any, ...]:
    return tuple(chunk.column(name)[row].as_py() for name in _NAMES)


def _micros(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000)

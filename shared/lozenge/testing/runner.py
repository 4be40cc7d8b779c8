"""`run`, and the alerts and dead letters that it returns. `harness` evaluates the detector."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from lozenge.contracts.alert import OWNER
from lozenge.contracts.avro import Codec
from lozenge.contracts.record import RecordPosition
from lozenge.detector.author_error import described
from lozenge.detector.definition import INPUT, Detector, Settings
from lozenge.detector.input_stream import stream_of
from lozenge.detector.loader import LoadedDetector, from_folder
from lozenge.detector.manifest import Manifest
from lozenge.detector.package import is_detector
from lozenge.job.batch_result import BatchResult, DraftAlert
from lozenge.spark.internals.python_api import read_types_without_session
from lozenge.streams.project import Streams
from lozenge.testing.events import NOW, CompleteEvent, PartialEvent, event_table, events, positions
from lozenge.testing.harness import Harness
from lozenge.testing.table_rows import check_rows

Tables = Mapping[str, Sequence[Mapping[str, Any]]]
"""Rows that replace reference tables, by name."""


@dataclass(frozen=True)
class AlertRecord:
    """An alert as the job writes it to its topic. `trigger` is the partition and offset of its event."""

    alert_id: str
    entity: str
    severity: str
    score: float
    title: str
    reason: str
    evidence: tuple[str, ...]
    values: Mapping[str, str]
    labels: Mapping[str, str]
    event_time: datetime
    trigger: RecordPosition | None


@dataclass(frozen=True)
class DeadLetterRecord:
    """An event that could not be processed. `event_id` is "timer/<time>" for a timer, "group/<entity>" for a group.

    `error` names the line of the detector that raised, if one did. `event` has the event's fields; a timer and a group
    have none.
    """

    event_id: str
    error: str
    event: CompleteEvent = field(default_factory=dict)


class Run(list[AlertRecord]):
    """The alerts of one run in the order of event time, and its dead letters."""

    def __init__(self, alerts: Iterable[AlertRecord], dead_letters: Iterable[DeadLetterRecord]) -> None:
        super().__init__(sorted(alerts, key=lambda alert: alert.event_time))
        self.dead_letters = list(dead_letters)

    @property
    def reasons(self) -> dict[str, str]:
        """Reason by alert id: the alerts without repeats, as the notifier sees them."""
        return {alert.alert_id: alert.reason for alert in self}


@dataclass(frozen=True)
class RunInput:
    """A detector with settings, tables and the events to process."""

    loaded: LoadedDetector
    settings: Settings
    tables: Tables
    events: Sequence[CompleteEvent]

    def harness(self) -> Harness:
        """The harness that evaluates the detector."""
        return Harness(self.loaded, self.settings, self.tables)


_listeners: list[Callable[[RunInput, Run], None]] = []


def detector_of(test_file: str) -> LoadedDetector:
    """The detector whose folder holds the test, at any depth: `detector = detector_of(__file__)`."""
    read_types_without_session()
    folders = Path(test_file).resolve().parents
    return from_folder(next(filter(is_detector, folders), folders[0]))


def of(detector: Detector[Any]) -> LoadedDetector:
    """A detector with the manifest in its module's folder."""
    return detector_of(inspect.getfile(detector.detect))


def with_manifest(detector: Detector[Any], name: str = "under_test", **manifest: Any) -> LoadedDetector:
    """A detector without a folder. `manifest` are keys of `[tool.lozenge]`, such as kind="stateful"; stream="orders" is
    needed only where there are several, and streams=["orders", "visits"] with a key for one that reads both. One of
    alerts has alerts_of="large_orders" and a key."""
    values = {"kind": "rule", "owner": "nobody", "title": "Under test", **manifest}
    declaration = Manifest.model_validate(values)
    stream = stream_of(declaration, Streams.load(), name)
    return LoadedDetector(name, "0", detector, declaration, Path(), stream)


def run(
    detector: LoadedDetector | Detector[Any],
    partials: Iterable[PartialEvent],
    settings: Mapping[str, Any] | Settings | None = None,
    *,
    tables: Tables | None = None,
    batches: int | None = None,
) -> Run:
    """The alerts and dead letters of a detector on these events, which arrive in the given order.

    `settings` are the values that differ from the defaults. `tables` replaces reference tables by rows; other tables
    are the detector's own files. `batches` is the largest number of events in one micro-batch (None: all in one); it
    must not change the alerts. A `Detector` takes the manifest of its module's folder; use `with_manifest` for one
    without a folder. Raises DetectorError for a detector that cannot run as a job, ValueError for arguments that make
    no sense.
    """
    if batches is not None and batches < 1:
        raise ValueError(f"batches is {batches}: a batch has at least one event")
    case = case_of(detector, partials, settings, tables)
    batch = event_table(case.events, case.loaded.key_column, case.loaded.stream)
    harness = case.harness()
    result = run_of(harness, batch, harness.process(batch, batches))
    for listener in _listeners:
        listener(case, result)
    return result


def on_run(listener: Callable[[RunInput, Run], None]) -> None:
    """Calls `listener` after every `run` from now on."""
    _listeners.append(listener)


def case_of(
    detector: LoadedDetector | Detector[Any],
    partials: Iterable[PartialEvent],
    settings: Mapping[str, Any] | Settings | None = None,
    tables: Tables | None = None,
) -> RunInput:
    """The case that `run` evaluates for these arguments."""
    loaded = detector if isinstance(detector, LoadedDetector) else of(detector)
    values = (
        settings if isinstance(settings, Settings) else loaded.detector.settings.model_validate(dict(settings or {}))
    )
    for name, rows in (tables or {}).items():
        check_rows(name, rows, loaded.declaration)
    return RunInput(loaded, values, tables or {}, events(partials, loaded.stream))


def run_of(harness: Harness, batch: pa.Table, result: BatchResult) -> Run:
    """The result of processing `batch`, as the job would write it to the detector's topics."""
    complete = dict(zip(positions(batch), batch.drop_columns(INPUT).to_pylist(), strict=True))
    return Run(
        (_written(harness, draft) for draft in result.alerts),
        [
            *(_dead_letter(complete[p.position], p.error) for p in result.failed_records),
            *(DeadLetterRecord(f.cause, described(f.error)) for f in result.failures_without_record),
        ],
    )


def _dead_letter(event: CompleteEvent, error: Exception) -> DeadLetterRecord:
    return DeadLetterRecord(str(event["event_id"]), described(error), event)


def _written(harness: Harness, draft: DraftAlert) -> AlertRecord:
    """The draft after a round trip through its record, so that what cannot be written fails here."""
    alert = Codec.of("alert").decode(harness.encoder.record(draft, NOW).value)
    trigger = alert["trigger"]
    return AlertRecord(
        alert_id=alert["alert_id"],
        entity=alert["entity"]["id"],
        severity=alert["severity"],
        score=alert["score"],
        title=alert["title"],
        reason=alert["reason"],
        evidence=tuple(alert["evidence"]["event_ids"]),
        values=alert["evidence"]["values"],
        labels={name: text for name, text in alert["labels"].items() if name != OWNER},
        event_time=alert["event_time"],
        trigger=(trigger["partition"], trigger["offset"]) if trigger else None,
    )

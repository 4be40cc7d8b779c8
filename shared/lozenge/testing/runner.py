"""`run` and what it returns; how the detector is evaluated stands in `bench`."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from lozenge.contracts.alert import OWNER
from lozenge.contracts.avro import Codec
from lozenge.contracts.record import Place
from lozenge.detector.definition import Detector, Settings
from lozenge.detector.loader import LoadedDetector, from_folder
from lozenge.detector.manifest import Manifest
from lozenge.errors import LozengeError
from lozenge.job.batch_result import BatchResult, DraftAlert
from lozenge.testing.events import NOW, Partial, Whole, events, places, table
from lozenge.testing.harness import Bench

Tables = Mapping[str, Sequence[Mapping[str, Any]]]
"""Rows in the place of reference tables, by name."""


@dataclass(frozen=True)
class AlertRecord:
    """An alert as it would stand in the detector's topic; `trigger` is (partition, offset) of its event."""

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
    trigger: Place | None


@dataclass(frozen=True)
class DeadLetter:
    """An event that could not be judged; else `event_id` is "timer/" and its time, or "group/" and its entity."""

    event_id: str
    error: str


class Run(list[AlertRecord]):
    """The alerts of one run by event time, with the events that could not be judged."""

    def __init__(self, alerts: Iterable[AlertRecord], dead_letters: Iterable[DeadLetter]) -> None:
        super().__init__(sorted(alerts, key=lambda alert: alert.event_time))
        self.dead_letters = list(dead_letters)

    @property
    def told(self) -> dict[str, str]:
        """Reason by alert id: what a notifier, which drops repeats, would tell."""
        return {alert.alert_id: alert.reason for alert in self}


@dataclass(frozen=True)
class Case:
    """A detector, its settings and tables, and the events that it is to judge."""

    loaded: LoadedDetector
    settings: Settings
    tables: Tables
    events: Sequence[Whole]

    def bench(self) -> Bench:
        """What evaluates it."""
        return Bench(self.loaded, self.settings, self.tables)


_listeners: list[Callable[[Case, Run], None]] = []


def beside(test_file: str) -> LoadedDetector:
    """The detector in the folder of a test: `detector = beside(__file__)`."""
    return from_folder(Path(test_file).resolve().parent)


def of(detector: Detector[Any]) -> LoadedDetector:
    """A detector with the declaration that lies beside its module."""
    return beside(inspect.getfile(detector.detect))


def declared(detector: Detector[Any], name: str = "under_test", **declaration: Any) -> LoadedDetector:
    """A detector that has no folder, with what `[tool.lozenge]` would say, such as kind="stateful"."""
    values = {"kind": "rule", "owner": "nobody", "title": "Under test", **declaration}
    return LoadedDetector(name, "0", detector, Manifest.model_validate(values), Path())


def run(
    detector: LoadedDetector | Detector[Any],
    partials: Iterable[Partial],
    settings: Mapping[str, Any] | Settings | None = None,
    *,
    tables: Tables | None = None,
    batches: int | None = None,
) -> Run:
    """What the detector makes of these events, which arrive in the order given.

    `settings` are the values that differ from the defaults. `tables` replaces reference tables by rows;
    the others are the detector's own files. `batches` is the largest number of events in one micro-batch
    (None: all in one); it must not change what is told. A bare Detector has its declaration beside its
    module; one that has none goes through `declared` first. Raises DetectorError for a detector that
    could not run as a job.
    """
    case = case_of(detector, partials, settings, tables)
    batch = table(case.events, case.loaded.declaration.key_column)
    bench = case.bench()
    told = told_of(bench, batch, bench.judge(batch, batches))
    for listener in _listeners:
        listener(case, told)
    return told


def listen(listener: Callable[[Case, Run], None]) -> None:
    """From now on `listener` is told of every `run`, after it."""
    _listeners.append(listener)


def case_of(
    detector: LoadedDetector | Detector[Any],
    partials: Iterable[Partial],
    settings: Mapping[str, Any] | Settings | None = None,
    tables: Tables | None = None,
) -> Case:
    """What `run` with these arguments evaluates."""
    loaded = detector if isinstance(detector, LoadedDetector) else of(detector)
    values = (
        settings if isinstance(settings, Settings) else loaded.detector.settings.model_validate(dict(settings or {}))
    )
    return Case(loaded, values, tables or {}, events(partials))


def told_of(bench: Bench, batch: pa.Table, judged: BatchResult) -> Run:
    """What `bench` has judged of `batch`, as it would stand in the detector's topics."""
    names = dict(zip(places(batch), map(str, batch.column("event_id").to_pylist()), strict=True))
    return Run(
        (_written(bench, draft) for draft in judged.alerts),
        [
            *(DeadLetter(names[p.partition, p.offset], _words(p.error)) for p in judged.failed_records),
            *(DeadLetter(f.cause, _words(f.error)) for f in judged.failures_without_record),
        ],
    )


def _written(bench: Bench, draft: DraftAlert) -> AlertRecord:
    """The draft after a round trip through its record, so that what cannot be written fails here."""
    alert = Codec.of("alert").decode(bench.writer.record(draft, NOW).value)
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


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, LozengeError) else f"{type(error).__name__}: {error}"

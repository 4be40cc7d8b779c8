"""Runs samples by upstream's own code, and says where something else becomes of a record than it must."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from lozenge_upstream.normalise.mapping import Mapping
from lozenge_upstream.settings import DEMO_TOKEN_KEY
from lozenge_upstream.stream_samples.expected_values import ABSENT, FieldDifference, differences, expected_value
from lozenge_upstream.stream_samples.sample_files import Sample, SourceSamples, fields_of
from lozenge_upstream.stream_samples.tried_record import TriedRecord, as_json, try_records

TOKEN_KEY = DEMO_TOKEN_KEY.encode()
"""Tokens in samples are made with this key everywhere, so that a file is right on each machine."""


@dataclass(frozen=True)
class SampleResult:
    """One sample, and each field of it that is not as expected, as texts for people. Field "" is the whole record."""

    source: str
    sample: str
    failures: tuple[FieldDifference, ...]

    def shown(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {
            "source": self.source,
            "sample": self.sample,
            "failures": [failure._asdict() for failure in self.failures],
        }


def run(spark: SparkSession, mapping: Mapping, of: SourceSamples) -> list[SampleResult]:
    """What becomes of each sample, in their order. The session is one with upstream's settings."""
    records = [(sample.value, sample.arrived or of.arrived) for sample in of.samples]
    tried = try_records(spark, mapping, records, TOKEN_KEY)
    return [
        SampleResult(of.source, sample.name, tuple(_failures(sample, record, mapping)))
        for sample, record in zip(of.samples, tried, strict=True)
    ]


def _failures(sample: Sample, record: TriedRecord, mapping: Mapping) -> Iterator[FieldDifference]:
    if sample.event is None or record.event is None:
        expected, outcome = _expected_outcome(sample, mapping), _outcome(record)
        if expected != outcome:
            yield FieldDifference("", expected, outcome)
        return
    own = fields_of(mapping)
    for name, written in sample.event.items():
        got = record.event.get(name)
        if name in ("event_id", "transaction_id"):  # as they are shown, with a separator that people can read
            got = as_json(got)
        found = differences(own[name], expected_value(own[name], written), got)
        yield from (FieldDifference(each.field, text(each.expected), text(each.got)) for each in found)
    for name in sample.absent:
        if name in record.event:
            yield FieldDifference(name, ABSENT, text(record.event[name]))


def text(value: Any) -> str:
    """A value of an event for people."""
    shown = as_json(value)
    if shown is None:
        return ABSENT
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)


def _expected_outcome(sample: Sample, mapping: Mapping) -> str:
    if sample.dead_letter is not None:
        return f"a dead letter: {sample.dead_letter}"
    return "an event" if sample.skipped is None else f"skipped: {mapping.source}/{sample.skipped}"


def _outcome(record: TriedRecord) -> str:
    if record.problems:
        return f"a dead letter: {', '.join(record.problems)}"
    return f"skipped: {record.skipped}" if record.skipped else "an event"

"""Reads the samples of a stream: `samples/<source>.toml` has those of one mapping.

    arrived = 2026-03-01T12:00:00Z

    [[sample]]
    name = "a payment"
    record = '''{"txn_id": "t-1", "amount": "12.50"}'''
    event = { amount = "12.50", currency = "EUR" }

`arrived` is the Kafka timestamp of the raw records; a sample may have another. What must become of a record is an
`event`, whose fields are compared as far as they are named; or `dead_letter`, its reasons; or `skipped`, by which name.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from lozenge import validation
from lozenge.contracts.display_text import is_blank
from lozenge.process.text_files import bad_byte, text_in
from lozenge.streams import fields as f
from lozenge_upstream.normalise.field_checks import EVENT_TIME, IDENTITY
from lozenge_upstream.normalise.mapping import Mapping as RawMapping
from lozenge_upstream.normalise.normaliser import KINDS
from lozenge_upstream.stream_samples.expected_values import expected_value

_OWN = (
    f.Field("event_id", f.TEXT, optional=False, hints={}),
    f.Field(IDENTITY, f.TEXT, optional=True, hints={}),
    f.Field(EVENT_TIME, {"type": "long", "logicalType": f.TIME}, optional=False, hints={}),
)


def _visible(text: str) -> str:
    if is_blank(text) or not text.isprintable():
        raise ValueError("it is no name that a person can read")
    return text


class Sample(BaseModel):
    """A raw record, and what must become of it: one of `event`, `dead_letter` and `skipped`.

    `absent` names fields that the event must not have.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, AfterValidator(_visible)]
    record: str
    arrived: AwareDatetime | None = None
    event: dict[str, Any] | None = None
    absent: tuple[str, ...] = ()
    dead_letter: str | None = None
    skipped: str | None = None

    @model_validator(mode="after")
    def _expects_one_thing(self) -> "Sample":
        if sum(each is not None for each in (self.event, self.dead_letter, self.skipped)) != 1:
            raise ValueError("a sample has one of event, dead_letter and skipped")
        if self.absent and self.event is None:
            raise ValueError("absent names fields of an event")
        return self

    @property
    def value(self) -> bytes:
        """The record as Kafka holds it."""
        return self.record.strip("\n").encode()


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    arrived: AwareDatetime
    sample: Annotated[tuple[Sample, ...], Field(min_length=1)]


@dataclass(frozen=True)
class SourceSamples:
    """The samples of one source; `arrived` is the Kafka timestamp of those that have none of their own."""

    source: str
    arrived: datetime
    samples: tuple[Sample, ...]


def fields_of(mapping: RawMapping) -> dict[str, f.Field]:
    """What a sample may name of an event: `event_id`, the source's own id, `event_time`, and the stream's fields."""
    return {field.name: field for field in (*_OWN, *mapping.stream.fields)}


def read(folder: Path, mappings: Iterable[RawMapping]) -> tuple[list[SourceSamples], list[str]]:
    """The samples in `folder`, by source, and every problem of every file; none where there is no such folder."""
    by_source = {mapping.source: mapping for mapping in mappings}
    found, problems = list[SourceSamples](), list[str]()
    for file in sorted(folder.glob("*.toml")):
        samples, wrong = _file(file, by_source)
        problems += [f"samples/{file.name}: {problem}" for problem in wrong]
        if samples is not None and not wrong:
            found.append(samples)
    return found, problems


def _file(file: Path, mappings: Mapping[str, RawMapping]) -> tuple[SourceSamples | None, list[str]]:
    if (mapping := mappings.get(file.stem)) is None:
        known = ", ".join(mappings) or "none"
        return None, [f"there is no mapping with the source {file.stem} that can be run, but {known}"]
    try:
        read = _File.model_validate(tomllib.loads(text_in(file.read_bytes())))
    except ValidationError as error:
        return None, [_sentence(each) for each in validation.problems(error)]
    except UnicodeDecodeError as error:
        return None, [f"not UTF-8: {bad_byte(error)}"]
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return None, [f"not TOML: {error or type(error).__name__}"]
    except OSError as error:
        return None, [str(error.strerror)]
    return SourceSamples(file.stem, read.arrived, read.sample), list(_problems(read.sample, mapping))


def _sentence(error: Any) -> str:
    """Where in the file it is, counted from 1 as people do, and what it is."""
    place = [str(part + 1) if isinstance(part, int) else str(part) for part in error["loc"]]
    return ": ".join([*([" ".join(place)] if place else []), error["msg"]])


def _problems(samples: Iterable[Sample], mapping: RawMapping) -> Iterator[str]:
    names, own = set[str](), fields_of(mapping)
    for sample in samples:
        if sample.name in names:
            yield f"{sample.name}: there is another sample of this name"
        names.add(sample.name)
        yield from (f"{sample.name}: {problem}" for problem in _sample_problems(sample, own, mapping))


def _sample_problems(sample: Sample, own: Mapping[str, f.Field], mapping: RawMapping) -> Iterator[str]:
    for name in (*(sample.event or {}), *sample.absent):
        if name not in own:
            yield f"an event of {mapping.stream.name} has no field {name}; it has {', '.join(own)}"
    for name, written in (sample.event or {}).items():
        if name in own:
            try:
                expected_value(own[name], written)
            except ValueError as error:
                yield str(error)
    yield from (f"{name} is absent and in event at once" for name in sample.absent if name in (sample.event or {}))
    for reason in sample.dead_letter.split(", ") if sample.dead_letter is not None else ():
        if reason.partition(":")[0] not in KINDS:
            yield f"no dead letter has the reason {reason!r}; a reason is such as missing:{own[EVENT_TIME].name}"
    if sample.skipped is not None and sample.skipped not in {skip.name for skip in mapping.skip}:
        known = ", ".join(skip.name for skip in mapping.skip) or "none"
        yield f"the mapping skips no records as {sample.skipped!r}; it has {known}"

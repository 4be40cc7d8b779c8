"""Reads the samples of a stream: `samples/<source>.toml` has those of one mapping.

    arrived = 2026-03-01T12:00:00Z

    [[sample]]
    name = "a payment"
    record = '''{"txn_id": "t-1", "amount": "12.50"}'''
    event = { amount = "12.50", currency = "EUR" }

`arrived` is the Kafka timestamp of the raw records; a sample may have another. What must become of a record is an
`event`, whose fields are compared as far as they are named; or `dead_letter`, its reasons; or `skipped`, by which name.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from lozenge.contracts.display_text import is_blank
from lozenge.process.text_files import UnreadableText, problems_of, read_toml
from lozenge.streams import fields as f
from lozenge.streams.folder import SAMPLES
from lozenge.toml_places import Problem, TomlPlaces
from lozenge_upstream.normalise.field_checks import EVENT_TIME, IDENTITY
from lozenge_upstream.normalise.mapping import Mapping as RawMapping
from lozenge_upstream.normalise.mapping_files import RefusedMapping
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


def read(
    folder: Path, mappings: Iterable[RawMapping], refused: Iterable[RefusedMapping] = ()
) -> tuple[list[SourceSamples], list[str]]:
    """The samples in `folder`, by source, and every problem of every file; none where there is no such folder.

    Of those whose mapping is `refused` the problems are found as far as it can be read.
    """
    by_source: dict[str, RawMapping | None] = {each.name.removesuffix(".toml"): each.readable for each in refused}
    by_source |= {mapping.source: mapping for mapping in mappings}
    found, problems, names = list[SourceSamples](), list[str](), dict[str, str]()
    for file in sorted(folder.glob("*.toml")):
        name = f"{SAMPLES}/{file.name}"
        if file.stem not in by_source:
            known = ", ".join(by_source) or "none"
            problems.append(f"{name}: there is no mapping with the source {file.stem}; there are {known}")
            continue
        places, samples, wrong = _file(file)
        if samples is not None:
            meant = [*_repeated(samples, name, names), *_problems(samples, by_source[file.stem])]
            wrong = [f"{places.head(name, each.place)}: {each.sentence}" for each in meant]
        problems += wrong
        if samples is not None and not wrong:
            found.append(samples)
    return found, problems


def _file(file: Path) -> tuple[TomlPlaces, SourceSamples | None, list[str]]:
    """Where the file says what, its samples, and why it cannot be read."""
    name, places = f"{SAMPLES}/{file.name}", TomlPlaces()
    try:
        declared, places = read_toml(file)
        read = _File.model_validate(declared)
        return places, SourceSamples(file.stem, read.arrived, read.sample), []
    except UnreadableText as error:
        said = [f"{name}: {error}"]
    except ValidationError as error:
        said = [places.said(name, problem) for problem in problems_of(error)]
    return places, None, said


def _repeated(samples: SourceSamples, file: str, earlier: dict[str, str]) -> Iterator[Problem]:
    """Names that another sample of the stream has: a failure is known by its name. Case and blanks do not count.

    `earlier` has the file of each name, and gets those of these samples.
    """
    for number, sample in enumerate(samples.samples):
        name = " ".join(sample.name.casefold().split())
        if other := earlier.get(name):
            where = "" if other == file else f", in {other}"
            yield Problem(
                ("sample", number, "name"), f"{sample.name}: there is another sample of this name{where}; rename one"
            )
        earlier.setdefault(name, file)


def _problems(of: SourceSamples, mapping: RawMapping | None) -> Iterator[Problem]:
    """What the samples of a source expect and cannot be; None is a mapping of which nothing can be read."""
    for number, sample in enumerate(of.samples):
        found = (*_outcome_problems(sample), *(_event_problems(sample, mapping) if mapping is not None else ()))
        yield from (Problem(("sample", number, *place), f"{sample.name}: {sentence}") for place, sentence in found)


def _outcome_problems(sample: Sample) -> Iterator[Problem]:
    yield from (
        Problem(("absent",), f"{name} is absent and in event at once")
        for name in sample.absent
        if name in (sample.event or {})
    )
    for reason in sample.dead_letter.split(", ") if sample.dead_letter is not None else ():
        if reason.partition(":")[0] not in KINDS:
            known = ", ".join(KINDS)
            yield Problem(("dead_letter",), f"no dead letter has the reason {reason!r}; it begins with one of {known}")


def _event_problems(sample: Sample, mapping: RawMapping) -> Iterator[Problem]:
    own = fields_of(mapping)
    for where, names in (("event", sample.event or {}), ("absent", sample.absent)):
        for name in names:
            if name not in own:
                has = ", ".join(own)
                yield Problem((where, name), f"an event of {mapping.stream.name} has no field {name}; it has {has}")
    for name, written in (sample.event or {}).items():
        if name in own:
            try:
                expected_value(own[name], written)
            except ValueError as error:
                yield Problem(("event", name), str(error))
    if sample.skipped is not None and sample.skipped not in {skip.name for skip in mapping.skip}:
        known = ", ".join(skip.name for skip in mapping.skip) or "none"
        yield Problem(("skipped",), f"the mapping skips no records as {sample.skipped!r}; it has {known}")

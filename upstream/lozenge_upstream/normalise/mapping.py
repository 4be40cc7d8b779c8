"""What a raw format looks like, as data: one TOML file per source says how each canonical field is made.

The transforms are a closed set, so a mapping can be read, checked and trusted without running it;
`transforms.py` holds what each of them does. A value that a transform cannot accept makes the record
a dead letter; a mapping cannot declare that away, except with a `default`.
"""

from collections.abc import Collection, Iterator
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

from lozenge.contracts.topic_patterns import is_written_by_platform
from lozenge.streams.definition import StreamDefinition
from lozenge.toml_places import Place, Problem
from lozenge_upstream.normalise import declarations as d
from lozenge_upstream.normalise import field_checks
from lozenge_upstream.normalise.declarations import Condition, Skip, Step, Steps, Transform, any_element, spelled
from lozenge_upstream.normalise.field_checks import EVENT_TIME, IDENTITY


def _raw(topic: str) -> str:
    if is_written_by_platform(topic):
        raise ValueError(f"{topic} is a topic that the platform writes; name the one that the source writes")
    return topic


class Mapping(BaseModel):
    """One source: its name, its raw topic and its fields.

    `keyed_by` declares which key of the stream the raw topic is keyed by; "" is none. Only then do all records of an
    entity lie in one raw partition, and its events come out in order however far the partitions are read apart.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
    topic: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9._-]+$"), AfterValidator(_raw)]
    keyed_by: str
    fields: dict[str, d.AnyTransform]
    """How each field of the stream is made, with `transaction_id`, the source's own id, and `event_time`."""

    stream: StreamDefinition
    """The stream in whose folder the mapping is. No file says it."""

    skip: tuple[Skip, ...] = ()
    """Records that are no events and no faults: the first whose conditions hold counts a record under its name."""

    def declared(self) -> Iterator[tuple[str, Transform]]:
        """Every field that this mapping makes, with its transform, in the order of the event."""
        for name in (IDENTITY, EVENT_TIME, *(field.name for field in self.stream.fields)):
            if (spec := self.fields.get(name)) is not None:
                yield name, spec

    @property
    def optional(self) -> tuple[str, ...]:
        """Fields that the mapping, or a record, may omit."""
        return (IDENTITY, *(field.name for field in self.stream.fields if field.optional))

    @property
    def paths(self) -> list[str]:
        """Every raw field that this mapping reads as a text, sorted; but for those within lists and maps."""
        asked = (condition.path for skip in self.skip for condition in skip.when)
        return sorted({*(path for _, spec in self.declared() for path in spec.paths), *asked})

    @property
    def containers(self) -> list[str]:
        """Every raw list and object that this mapping reads as such, sorted; but for those within others."""
        return sorted({path for _, spec in self.declared() for path in d.containers(spec)})

    @property
    def ways(self) -> list[Steps]:
        """The way to every raw field, also to those within lists and maps; in an order that is always the same."""
        read = (way for _, spec in self.declared() for way in d.ways(spec))
        return sorted({*read, *map(any_element, self.paths)}, key=spelled)

    @property
    def numbers(self) -> set[Steps]:
        """The ways to raw fields of which a JSON number has to keep all of its digits.

        A binary fraction has no more of them than Spark reads anyway.
        """
        inexact = {field.name for field in self.stream.fields if field.kind in ("float", "double")}
        return {way for name, spec in self.declared() if name not in inexact for way in d.exact_ways(spec)}

    def parts(self) -> Iterator[tuple[Place, BaseModel]]:
        """All that it declares of fields and skips, down to single conditions, with the place of each in the file."""
        yield from d.parts_of(("fields",), self.fields)
        yield from d.parts_of(("skip",), self.skip)


def problems(mapping: Mapping, unreadable: Collection[Place] = ()) -> Iterator[Problem]:
    """Everything that a mapping of the right form says and cannot mean.

    `unreadable` are places of its file that have another problem already and are not in `mapping`.
    """
    if mapping.keyed_by and mapping.keyed_by not in mapping.stream.keys:
        known = ", ".join(mapping.stream.keys)
        yield Problem(
            ("keyed_by",), f'the stream has no key {mapping.keyed_by}; it has {known}, and "" is none of them'
        )
    names = [skip.name for skip in mapping.skip]
    for number, name in enumerate(names):
        if name in names[:number]:
            yield Problem(("skip", number, "name"), f"{name} is declared twice; give each its own name")
    yield from _path_problems(mapping)
    yield from field_checks.problems(mapping.fields, mapping.stream, unreadable)


def _path_problems(mapping: Mapping) -> Iterator[Problem]:
    """Raw fields that are read as two things at once."""
    read: dict[Steps, Place] = {}
    for name, spec in mapping.declared():
        for way in d.ways(spec):
            read.setdefault(way, ("fields", name))
    for place, part in d.parts_of(("skip",), mapping.skip):
        if isinstance(part, Condition):
            read.setdefault(any_element(part.path), place)
    if () in read:
        yield Problem(read.pop(()), 'the path "." is the element of a list or a map: it is for `of` alone')
    kinds: dict[Steps, set[str]] = {}
    for way in read:
        for at in range(len(way)):
            kinds.setdefault(way[:at], set()).add(_holder(way[at]))
    for way, found in sorted(kinds.items(), key=lambda each: spelled(each[0])):
        if way in read:
            yield Problem(read[way], f"{spelled(way)} cannot be a value and hold further fields at once")
        elif len(found) > 1:
            one, *_, other = sorted(found)
            place = next(place for inner, place in read.items() if inner[: len(way)] == way)
            yield Problem(place, f"{spelled(way)} cannot be {_article(one)} and {_article(other)} at once")


def _holder(step: Step) -> str:
    """What has such a step in it."""
    if isinstance(step, int):
        return "list"
    return "map" if step is d.ANY_KEY else "object"


def _article(kind: str) -> str:
    return f"an {kind}" if kind == "object" else f"a {kind}"

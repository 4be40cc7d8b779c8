"""Reads the mappings of a stream from their files."""

import re
from collections.abc import Collection, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lozenge.contracts.topics import Topics
from lozenge.errors import ConfigError
from lozenge.process.text_files import UnreadableText, problems_of, read_toml
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.folder import MAPPINGS
from lozenge.toml_places import Place, Problem, TomlPlaces
from lozenge_upstream.normalise.declarations import SKIP_NAME
from lozenge_upstream.normalise.mapping import Mapping, problems

_UNKNOWN = StreamDefinition(name="unknown", title="?", owner="?", keys={}, avro={"fields": []})
"""The stream of mappings where that cannot be read: nothing is said of what fits it."""
_STAND_INS = {"source": "unreadable", "topic": "UNREADABLE", "keyed_by": "", "skip": [], "fields": {}}
"""What is read in place of something that has not the right form, for the problems of all the rest."""
_FIX = "nothing has changed; fix what is named. The page on mappings has every key"


@dataclass(frozen=True)
class MappingFile:
    """A file of a mapping: its name, and the line of everything in it."""

    name: str
    places: TomlPlaces = field(default_factory=TomlPlaces)

    def said(self, found: Iterable[Problem]) -> list[str]:
        """Problems for people, each once, in the order of the file."""
        by_line = sorted(found, key=lambda problem: self.places.line(problem.place) or 0)
        return list(dict.fromkeys(self.places.said(self.name, problem) for problem in by_line))


@dataclass(frozen=True)
class RefusedMapping:
    """A mapping that is not in force, and every reason why; its raw topic, "" where the file does not say it.

    `name` is its source, or else its file. `readable` is what of it has the right form, and None if nothing has.
    """

    name: str
    topic: str
    problems: tuple[str, ...]
    readable: Mapping | None = field(default=None, compare=False, repr=False)
    file: MappingFile = field(default_factory=lambda: MappingFile(""), compare=False, repr=False)


@dataclass(frozen=True)
class Mappings:
    """The mappings of all files, by source: those in force, and those that are not.

    `files` are those of the usable ones, by source.
    """

    usable: list[Mapping]
    refused: list[RefusedMapping]
    files: dict[str, MappingFile] = field(default_factory=dict, compare=False, repr=False)

    def file_of(self, mapping: Mapping) -> MappingFile:
        """The file of a usable mapping; one that was read from none is named by its source."""
        return self.files.get(mapping.source, MappingFile(mapping.source))

    def on(self, topics: Topics, existing: Collection[str]) -> "Mappings":
        """The same for the raw topics of a platform; those whose topic does not exist are refused.

        A mapping names its raw topic without the platform's prefix.
        """
        found = [m.model_copy(update={"topic": topics.prefixed(m.topic)}) for m in self.usable]
        refused = [replace(each, topic=topics.prefixed(each.topic) if each.topic else "") for each in self.refused]
        missing = [
            RefusedMapping(
                m.source, "", (f"{m.source}: there is no topic {m.topic}; create it, then restart upstream",)
            )
            for m in found
            if m.topic not in existing
        ]
        return replace(self, usable=[m for m in found if m.topic in existing], refused=[*refused, *missing])


def load(folder: Path, stream: StreamDefinition) -> list[Mapping]:
    """The mappings of `folder` to the fields of `stream`, by source.

    Raises ConfigError with every problem of every file at once.
    """
    found = read(folder, stream)
    if found.refused:
        raise wrong_mappings(found.refused)
    return found.usable


def read(folder: Path, stream: StreamDefinition) -> Mappings:
    """The mappings of `folder` to the fields of `stream`. A wrong file is refused; it takes nothing from the others.

    Of two files that declare one source or one topic the first one by name counts. Raises ConfigError if `folder` is
    not one.
    """
    if not folder.is_dir():
        raise ConfigError(f"reading the mappings of raw formats: {folder} is not a folder")
    found = Mappings([], [])
    for file in sorted(folder.glob("*.toml")):
        _add(found, file, stream)
    return replace(found, usable=sorted(found.usable, key=lambda mapping: mapping.source))


def form_problems(folder: Path) -> list[str]:
    """Every problem of form in the mappings of `folder`, where nobody can say yet what fits their stream."""
    found = list[str]()
    for file in sorted(folder.glob("*.toml")):
        of, declared, said = _parsed(file)
        found += said or of.said(_read(declared, _UNKNOWN, of.places)[1])
    return found


def mapping_of(declared: dict[str, object], stream: StreamDefinition) -> Mapping:
    """The mapping that a file declares; raises ValidationError. `mapping.problems` says whether it means something."""
    return Mapping.model_validate(declared | {"stream": stream})


def wrong_mappings(refused: Iterable[RefusedMapping], hint: str = _FIX) -> ConfigError:
    """The error that names every problem of the mappings `refused`; by default nothing runs with them."""
    return ConfigError(
        "reading the mappings of raw formats",
        problems=[problem for each in refused for problem in each.problems],
        hint=hint,
    )


def _add(found: Mappings, file: Path, stream: StreamDefinition) -> None:
    of, declared, said = _parsed(file)
    readable: Mapping | None = None
    if not said:
        readable, wrong = _read(declared, stream, of.places)
        said = of.said([*wrong, *_misplaced(declared, found.usable)])
    if said:
        known = {name: value if isinstance(value := declared.get(name), str) else "" for name in ("source", "topic")}
        topics = {mapping.topic for mapping in found.usable}
        name = known["source"] if known["source"] not in {m.source for m in found.usable} else ""
        topic = known["topic"] if known["topic"] not in topics else ""
        found.refused.append(RefusedMapping(name or file.name, topic, tuple(said), readable, of))
    elif readable is not None:
        found.usable.append(readable)
        found.files[readable.source] = of


def _parsed(file: Path) -> tuple[MappingFile, dict[str, Any], list[str]]:
    """The file, what it declares, and why it cannot be read at all."""
    name = f"{MAPPINGS}/{file.name}"
    try:
        declared, places = read_toml(file)
        return MappingFile(name, places), declared, []
    except UnreadableText as error:
        return MappingFile(name), {}, [f"{name}: {error}"]


def _read(
    declared: dict[str, Any], stream: StreamDefinition, places: TomlPlaces
) -> tuple[Mapping | None, list[Problem]]:
    """What of a mapping has the right form, and every problem: of what has it not, and of what means nothing."""
    wrong, cut = list[Problem](), set[Place]()
    left: dict[str, Any] = deepcopy(declared)
    while True:
        try:
            mapping = mapping_of(left, stream)
        except ValidationError as error:
            found = problems_of(error)
            wrong = wrong or found  # what is wrong later is so for what was cut
            further = {_whole(places.known(problem.place), problem.place) for problem in found} - cut
            if not further:
                return None, wrong
            for place in further:
                _cut(left, place)
            cut |= further
        else:
            return mapping, [*wrong, *(problems(mapping, cut) if stream is not _UNKNOWN else ())]


def _whole(known: Place, place: Place) -> Place:
    """The part of a mapping that cannot be read without what is at a place: a transform, a skip, or one name."""
    for end in range(len(known), 1, -1):
        if known[end - 2] == "fields":
            return known[:end]
    return known[:2] if known[:1] == ("skip",) else place[:1]


def _cut(declared: dict[str, Any], place: Place) -> None:
    """Takes the part at a place out of what is declared, or puts something harmless there."""
    *way, last = place
    within: Any = declared
    for part in way:
        within = within[part]
    if place[0] == "skip" and way:  # its number counts, and samples may have its name
        name = within[last].get("name") if isinstance(within[last], dict) else None
        kept = name if isinstance(name, str) and re.fullmatch(SKIP_NAME, name) else f"unreadable_{last}"
        within[last] = {"name": kept, "when": [{"path": "unreadable", "blank": True}]}
    elif not way and last in _STAND_INS:
        within[last] = deepcopy(_STAND_INS[last])
    else:
        within.pop(last, None)


def _misplaced(declared: dict[str, Any], earlier: Collection[Mapping]) -> Iterator[Problem]:
    """What an earlier file has, or the folder says."""
    if "stream" in declared:
        yield Problem(("stream",), "a mapping is in the folder of its stream; remove this")
    for what, names in (("source", {m.source for m in earlier}), ("topic", {m.topic for m in earlier})):
        if isinstance(name := declared.get(what), str) and name in names:
            yield Problem((what,), f"the {what} {name} is declared by an earlier file; name another")

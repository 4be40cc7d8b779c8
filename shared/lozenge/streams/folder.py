"""Reads a stream from its folder, or its definition from the copy that a release has.

upstream/streams/<name>/
  stream.toml            title, owner, keys, copies, tokens, retention, future cap, app, default
  event.avsc             the team's own fields, as an Avro record
  mappings/<source>.toml what becomes of each raw format
  samples/               raw records, and what must become of them
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from lozenge.apps import NORMALISER, UPSTREAM
from lozenge.contracts.display_text import VisibleText
from lozenge.durations import TextDuration
from lozenge.errors import ConfigError
from lozenge.process.text_files import UnreadableText, problems_of, read_text, read_toml
from lozenge.streams.definition import FUTURE_CAP, RETENTION, StreamDefinition
from lozenge.streams.fields import TEXT, field_at, fields_of, problems
from lozenge.toml_places import Problem, TomlPlaces
from lozenge.validation import problem_of

DECLARATION, SCHEMA, MAPPINGS, SAMPLES = "stream.toml", "event.avsc", "mappings", "samples"
COPY = "definition.json"
"""The definition in a release, which has no folder of a team's."""
NAME = r"[a-z][a-z0-9_]*"
_FIX = "fix what is named; the page on streams has every key"


def _some(time: timedelta) -> timedelta:
    if time <= timedelta():
        raise ValueError("it is longer than nothing")
    return time


_Name = Annotated[str, Field(pattern=f"^{NAME}$")]
_Time = Annotated[TextDuration, AfterValidator(_some)]


class _Declaration(BaseModel):
    """`stream.toml`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: VisibleText
    owner: VisibleText
    keys: Annotated[dict[_Name, str], Field(min_length=1)]
    copies: tuple[str, ...] = ()
    tokens: dict[str, _Name] = {}
    retention: _Time = RETENTION
    future_cap: _Time = FUTURE_CAP
    app: Annotated[str, Field(pattern=f"^{NORMALISER}$")] = ""
    default: bool = False


_STAND_INS = {"title": "?", "owner": "?", "keys": {"unreadable": ""}}
"""What is read in place of something required that has not the right form."""


def read(folder: Path) -> StreamDefinition:
    """The stream in `folder`; raises ConfigError with every problem of its files at once."""
    if (copy := folder / COPY).is_file():
        return _copied(copy)
    definition, found = readable(folder)
    if found or definition is None:
        raise ConfigError(f"reading the stream {folder}: {len(found)} problem(s)", problems=found, hint=_FIX)
    return definition


def readable(folder: Path) -> tuple[StreamDefinition | None, list[str]]:
    """The stream in `folder` as far as it can be read, and every problem of its own files.

    With a problem it is for the problems of other files alone; it is None where schema, keys or tokens cannot be read.
    """
    name, found = folder.name, list[str]()
    if not re.fullmatch(NAME, name):
        found.append(f"{folder}: a stream's name has lower-case letters, digits and underscores")
    declared = _declaration(folder / DECLARATION, found)
    avro = _schema(folder / SCHEMA, found)
    if declared is not None:
        found += declared.said(_mismatches(declared, avro))
    if declared is None or avro is None or declared.wrong & {"keys", "tokens"}:
        return None, found
    given = declared.found.model_dump() | {"app": declared.found.app or f"{UPSTREAM}-{name}"}
    topics, sources = (_named(folder / MAPPINGS, what) for what in ("topic", "source"))
    return StreamDefinition(name=name, avro=avro, raw_topics=topics, sources=sources, **given), found


def write_copy(definition: StreamDefinition, folder: Path) -> None:
    """Writes what `read` reads again, in a new folder of `folder`; of a merged stream each of its members.

    It has no field with its default, so an older library in the environment of a release reads it too.
    """
    for each in definition.members or (definition,):
        home = folder / each.name
        home.mkdir(parents=True)
        (home / COPY).write_text(each.model_dump_json(exclude_defaults=True), "utf-8")


def _copied(file: Path) -> StreamDefinition:
    try:
        return StreamDefinition.model_validate_json(file.read_bytes())
    except (ValidationError, OSError) as error:
        raise ConfigError(f"reading {file}: {problem_of(error)}", hint="release the detector again") from error


def _text(file: Path, found: list[str]) -> str | None:
    try:
        return read_text(file)
    except UnreadableText as error:
        found.append(f"{file.name}: {error}")
    return None


@dataclass(frozen=True)
class _Declared:
    """What could be read of `stream.toml`, with stand-ins for the names `wrong`, and where it says what."""

    found: _Declaration
    wrong: frozenset[str]
    places: TomlPlaces

    def said(self, problems: Iterable[Problem]) -> list[str]:
        """Problems of it for people, but for those of what is wrong already."""
        return [self.places.said(DECLARATION, each) for each in problems if each.place[0] not in self.wrong]


def _declaration(file: Path, found: list[str]) -> _Declared | None:
    try:
        given, places = read_toml(file)
    except UnreadableText as error:
        found.append(f"{file.name}: {error}")
        return None
    try:
        return _Declared(_Declaration.model_validate(given), frozenset(), places)
    except ValidationError as error:
        wrong = problems_of(error)
    found += [places.said(file.name, problem) for problem in wrong]
    names = {str(problem.place[0]) for problem in wrong}
    left = {name: value for name, value in given.items() if name not in names}
    left |= {name: value for name, value in _STAND_INS.items() if name in names}
    return _Declared(_Declaration.model_validate(left), frozenset(names), places)


def _schema(file: Path, found: list[str]) -> dict[str, Any] | None:
    if (text := _text(file, found)) is None:
        return None
    try:
        avro: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        found.append(f"{file.name}: not JSON: {error}")
        return None
    wrong = list(problems(avro))
    for field, problem in wrong:
        line = _line(text, rf'.*"name"\s*:\s*"{re.escape(field.split(".")[-1])}"') if field else ""
        found.append(f"{file.name}{line}: {field + ': ' if field else ''}{problem}")
    return None if wrong else avro


def _line(text: str, pattern: str) -> str:
    """Where a schema has it first, as " line 3"."""
    lines = (number for number, line in enumerate(text.splitlines(), 1) if re.match(pattern, line))
    return next((f" line {number}" for number in lines), "")


def _mismatches(of: _Declared, avro: dict[str, Any] | None) -> Iterator[Problem]:
    """What it names and neither it nor the schema has; the schema is None where it cannot be read."""
    declared = of.found
    others = list(declared.keys)[1:]
    if "keys" not in of.wrong and (unknown := [key for key in declared.copies if key not in others]):
        yield Problem(("copies",), f"{', '.join(unknown)}: the keys besides the first are {', '.join(others) or '-'}")
    if avro is None:
        return
    own = {field.name: field for field in fields_of(avro)}
    found = [(("keys", key), name, own.get(name)) for key, name in declared.keys.items()]
    found += [(("tokens", name), name, field_at(own.values(), name)) for name in declared.tokens]
    for place, name, field in found:
        if field is None:
            yield Problem(place, f"there is no field {name} in {SCHEMA}; it has {', '.join(own)}")
        elif field.kind != TEXT:
            yield Problem(place, f"{name} is of type {field.kind}; a key and a token are of type string")
    key, first = next(iter(declared.keys.items()))
    if first in own and own[first].optional:
        yield Problem(("keys", key), f"{first} keys the topic, so it cannot be optional")


def _named(folder: Path, what: str) -> tuple[str, ...]:
    """What the mappings name, each once; what is wrong in a mapping is found where it is read as a whole."""
    found = list[str]()
    for file in sorted(folder.glob("*.toml")):
        text = _text(file, [])
        try:
            name = tomllib.loads(text or "").get(what)
        except (tomllib.TOMLDecodeError, RecursionError):
            continue
        found += [name] if isinstance(name, str) else []
    return tuple(dict.fromkeys(found))

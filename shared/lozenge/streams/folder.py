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
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from lozenge import validation
from lozenge.contracts.display_text import is_blank
from lozenge.contracts.topics import NORMALISER, UPSTREAM
from lozenge.durations import TextDuration
from lozenge.errors import ConfigError
from lozenge.process.text_files import bad_byte, text_in
from lozenge.streams.definition import FUTURE_CAP, RETENTION, StreamDefinition
from lozenge.streams.fields import TEXT, field_at, fields_of, problems

DECLARATION, SCHEMA, MAPPINGS, SAMPLES = "stream.toml", "event.avsc", "mappings", "samples"
COPY = "definition.json"
"""The definition in a release, which has no folder of a team's."""
NAME = r"[a-z][a-z0-9_]*"
_FIX = "fix what is named; the page on streams has every key"


def _visible(text: str) -> str:
    if is_blank(text):
        raise ValueError("it shows nothing")
    return text


_Text = Annotated[str, AfterValidator(_visible)]
_Name = Annotated[str, Field(pattern=f"^{NAME}$")]


class _Declaration(BaseModel):
    """`stream.toml`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: _Text
    owner: _Text
    keys: Annotated[dict[_Name, str], Field(min_length=1)]
    copies: tuple[str, ...] = ()
    tokens: dict[str, _Name] = {}
    retention: TextDuration = RETENTION
    future_cap: TextDuration = FUTURE_CAP
    app: Annotated[str, Field(pattern=f"^{NORMALISER}$")] = ""
    default: bool = False

    @model_validator(mode="after")
    def _copies_are_keys(self) -> "_Declaration":
        others = list(self.keys)[1:]
        if unknown := [key for key in self.copies if key not in others]:
            raise ValueError(f"copies: {', '.join(unknown)}: the keys besides the first are {', '.join(others) or '-'}")
        if min(self.retention, self.future_cap).total_seconds() <= 0:
            raise ValueError("retention and future_cap are longer than nothing")
        return self


def read(folder: Path) -> StreamDefinition:
    """The stream in `folder`; raises ConfigError with every problem of its files at once."""
    if (copy := folder / COPY).is_file():
        return _copied(copy)
    name, found = folder.name, list[str]()
    if not re.fullmatch(NAME, name):
        found.append(f"{folder}: a stream's name has lower-case letters, digits and underscores")
    declared = _declaration(folder / DECLARATION, found)
    avro = _schema(folder / SCHEMA, found)
    if declared is not None and avro is not None:
        found += [f"{DECLARATION}: {problem}" for problem in _mismatches(declared, avro)]
    if found or declared is None or avro is None:
        raise ConfigError(f"reading the stream {folder}: {len(found)} problem(s)", problems=found, hint=_FIX)
    given = declared.model_dump() | {"app": declared.app or f"{UPSTREAM}-{name}"}
    topics, sources = (_named(folder / MAPPINGS, what) for what in ("topic", "source"))
    return StreamDefinition(name=name, avro=avro, raw_topics=topics, sources=sources, **given)


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
        raise ConfigError(f"reading {file}: {error}", hint="release the detector again") from error


def _text(file: Path, found: list[str]) -> str | None:
    try:
        return text_in(file.read_bytes())
    except UnicodeDecodeError as error:
        found.append(f"{file.name}: not UTF-8: {bad_byte(error)}")
    except OSError as error:
        found.append(f"{file.name}: {error.strerror}")
    return None


def _declaration(file: Path, found: list[str]) -> _Declaration | None:
    if (text := _text(file, found)) is None:
        return None
    try:
        return _Declaration.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        found.append(f"{file.name}: not TOML: {error}")
    except ValidationError as error:
        for each in validation.problems(error):
            path = ".".join(map(str, each["loc"]))
            line = _line(text, rf"\s*{re.escape(path.split('.')[0])}\s*=") if path else ""
            found.append(f"{file.name}{line}: {path + ': ' if path else ''}{each['msg']}")
    return None


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
    """Where the file has it first, as " line 3"."""
    lines = (number for number, line in enumerate(text.splitlines(), 1) if re.match(pattern, line))
    return next((f" line {number}" for number in lines), "")


def _mismatches(declared: _Declaration, avro: dict[str, Any]) -> Iterator[str]:
    own = {field.name: field for field in fields_of(avro)}
    found = [("keys", name, own.get(name)) for name in declared.keys.values()]
    found += [("tokens", name, field_at(own.values(), name)) for name in declared.tokens]
    for what, name, field in found:
        if field is None:
            yield f"{what}: there is no field {name} in {SCHEMA}"
        elif field.kind != TEXT:
            yield f"{what}: {name} is of type {field.kind}; a key and a token are of type string"
    first = next(iter(declared.keys.values()))
    if first in own and own[first].optional:
        yield f"keys: {first} keys the topic, so it cannot be optional"


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

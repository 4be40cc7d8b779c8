"""Reads the mappings of a stream from their files."""

import tomllib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from lozenge import validation
from lozenge.contracts.topics import Topics
from lozenge.errors import ConfigError
from lozenge.process.text_files import bad_byte, text_in
from lozenge.streams.definition import StreamDefinition
from lozenge_upstream.normalise import field_checks
from lozenge_upstream.normalise.mapping import Mapping


@dataclass(frozen=True)
class RefusedMapping:
    """A mapping that is not in force, and every reason why; its raw topic, "" where the file does not say it.

    `name` is its source, or else its file.
    """

    name: str
    topic: str
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Mappings:
    """The mappings of all files, by source: those in force, and those that are not."""

    usable: list[Mapping]
    refused: list[RefusedMapping]

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
        return Mappings([m for m in found if m.topic in existing], [*refused, *missing])


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
    return Mappings(sorted(found.usable, key=lambda mapping: mapping.source), found.refused)


def mapping_of(declared: dict[str, object], stream: StreamDefinition) -> Mapping:
    """The mapping that a file declares; raises ValidationError. `field_checks` says whether it fits the stream."""
    return Mapping.model_validate(declared | {"stream": stream})


def wrong_mappings(refused: Iterable[RefusedMapping]) -> ConfigError:
    """The error that names every problem of the mappings `refused`."""
    return ConfigError(
        "reading the mappings of raw formats",
        problems=[problem for each in refused for problem in each.problems],
        hint="fix the files named; raw records of their topics wait",
    )


def _add(found: Mappings, file: Path, stream: StreamDefinition) -> None:
    declared: dict[str, object] = {}
    try:
        declared = tomllib.loads(text_in(file.read_bytes()))
        mapping = mapping_of(declared, stream)
    except ValidationError as error:
        problems = [f"{file.name}: {_path(e['loc'])}{e['msg']}" for e in validation.problems(error)]
    except UnicodeDecodeError as error:
        problems = [f"{file.name}: not UTF-8: {bad_byte(error)}"]
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        problems = [f"{file.name}: not TOML: {error or type(error).__name__}"]
    except OSError as error:
        problems = [f"{file.name}: {error.strerror}"]
    else:
        misplaced = ["stream: a mapping is in the folder of its stream; remove this"] if "stream" in declared else []
        unfit = field_checks.problems(mapping.fields, stream)
        problems = [f"{file.name}: {each}" for each in (*misplaced, *unfit, *_repeated(mapping, found.usable))]
        if not problems:
            found.usable.append(mapping)
    if problems:
        known = {field: value if isinstance(value := declared.get(field), str) else "" for field in ("source", "topic")}
        topics = {mapping.topic for mapping in found.usable}
        name = known["source"] if known["source"] not in {m.source for m in found.usable} else ""
        topic = known["topic"] if known["topic"] not in topics else ""
        found.refused.append(RefusedMapping(name or file.name, topic, tuple(problems)))


def _path(location: Iterable[str | int]) -> str:
    return "".join(f"{part}: " for part in (".".join(map(str, location)),) if part)


def _repeated(mapping: Mapping, earlier: Collection[Mapping]) -> list[str]:
    return [
        f"the {what} {name} is declared by an earlier file"
        for what, name, names in (
            ("source", mapping.source, {m.source for m in earlier}),
            ("topic", mapping.topic, {m.topic for m in earlier}),
        )
        if name in names
    ]

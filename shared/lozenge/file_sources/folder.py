"""Reads the file sources of a project; `LOZENGE_SOURCES` names the folder, by default `upstream/sources`."""

import os
import re
from pathlib import Path

from pydantic import ValidationError

from lozenge.errors import ConfigError, UsageError
from lozenge.file_sources.definition import DECLARATION, NAME, FileSource
from lozenge.process.text_files import UnreadableText, problems_of, read_toml
from lozenge.toml_places import Problem

SOURCES_VARIABLE = "LOZENGE_SOURCES"
USUAL = Path("upstream", "sources")
"""Where the file sources of a project are."""


def sources_folder() -> Path:
    """The folder of this process's file sources; one that does not exist has none."""
    given = os.environ.get(SOURCES_VARIABLE, "").strip()
    here = Path.cwd()
    usual = (folder / USUAL for folder in (here, *here.parents))
    return Path(given).absolute() if given else next((each for each in usual if each.is_dir()), here / USUAL)


def names_in(folder: Path) -> list[str]:
    """The name of each file source in the folder, whether it is sound or not."""
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(each.name for each in found if (each / DECLARATION).is_file())


def read(folder: Path) -> FileSource:
    """The file source in `folder`; raises ConfigError with every problem at once, UsageError if there is none."""
    file = folder / DECLARATION
    if not file.is_file():
        have = ", ".join(names_in(folder.parent)) or "none"
        raise UsageError(f"looking for a file source in {folder}: it has no {DECLARATION}", hint=f"there are: {have}")
    problems = list[str]()
    if not re.fullmatch(NAME, folder.name):
        problems.append(f"{folder.name}: a file source's name has lower-case letters, digits and underscores")
    try:
        declared, places = read_toml(file)
        if "name" in declared:
            problems.append(places.said(file.name, Problem(("name",), "the name of the folder is that of the source")))
        source = FileSource.model_validate({**declared, "name": "unnamed" if problems else folder.name})
        problems += [places.said(file.name, problem) for problem in source.problems()]
        if not problems:
            return source
    except UnreadableText as error:
        problems.append(f"{file.name}: {error}")
    except ValidationError as error:
        problems += [places.said(file.name, problem) for problem in problems_of(error)]
    raise ConfigError(
        f"reading the file source {folder}: {len(problems)} problem(s)",
        problems=problems,
        hint="fix what is named; the page on files has every key",
    )

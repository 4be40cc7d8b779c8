"""Reads the file sources of a project; `LOZENGE_SOURCES` names the folder, by default `upstream/sources`."""

import os
import re
import tomllib
from pathlib import Path

from pydantic import ValidationError

from lozenge import validation
from lozenge.errors import ConfigError, UsageError
from lozenge.file_sources.definition import DECLARATION, NAME, FileSource
from lozenge.process.text_files import bad_byte, text_in

SOURCES_VARIABLE = "LOZENGE_SOURCES"
_USUAL = Path("upstream", "sources")


def sources_folder() -> Path:
    """The folder of this process's file sources; one that does not exist has none."""
    given = os.environ.get(SOURCES_VARIABLE, "").strip()
    here = Path.cwd()
    usual = (folder / _USUAL for folder in (here, *here.parents))
    return Path(given).absolute() if given else next((each for each in usual if each.is_dir()), here / _USUAL)


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
        declared = tomllib.loads(text_in(file.read_bytes()))
        if "name" in declared:
            problems.append(f"{DECLARATION}: name: the name of the folder is that of the source")
        source = FileSource.model_validate({**declared, "name": "unnamed" if problems else folder.name})
        problems += [f"{DECLARATION}: {problem}" for problem in source.problems()]
        if not problems:
            return source
    except UnicodeDecodeError as error:
        problems.append(f"{DECLARATION}: not UTF-8: {bad_byte(error)}")
    except tomllib.TOMLDecodeError as error:
        problems.append(f"{DECLARATION}: not TOML: {error}")
    except OSError as error:
        problems.append(f"{DECLARATION}: {error.strerror}")
    except ValidationError as error:
        problems += [f"{DECLARATION}: {problem}" for problem in validation.sentences(error)]
    raise ConfigError(
        f"reading the file source {folder}: {len(problems)} problem(s)",
        problems=problems,
        hint="fix what is named; the page on files has every key",
    )

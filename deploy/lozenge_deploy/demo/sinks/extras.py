"""The words of `--with`: what a demo runs on request."""

from enum import StrEnum

from lozenge.errors import UsageError


class Extra(StrEnum):
    """Something that a demo runs on request: sinks of this project, and a source of files."""

    ARCHIVE = "archive"
    CACHE = "cache"
    FILES = "files"


SINKS = {Extra.ARCHIVE: "archive", Extra.CACHE: "last_authorisation"}
"""The sink of each that is one."""


def extras(names: str) -> tuple[Extra, ...]:
    """The words with commas between them, each once; raises UsageError with all that are unknown."""
    given = [name.strip() for name in names.split(",") if name.strip()]
    known = [str(each) for each in Extra]
    if unknown := sorted(set(given) - set(known)):
        raise UsageError(f"reading --with: there is no {', '.join(unknown)}", hint=f"name some of {', '.join(known)}")
    return tuple(each for each in Extra if each in given)

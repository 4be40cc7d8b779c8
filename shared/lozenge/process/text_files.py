"""Text that people write by hand in UTF-8: files that editors begin with a mark, values with ends of lines around."""

import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lozenge import validation
from lozenge.toml_places import Problem, TomlPlaces

_MARK = "\ufeff"


class UnreadableText(ValueError):
    """A file that is not there, not UTF-8, or not TOML; the sentence says which, and not of what file."""


def read_text(file: Path) -> str:
    """The text of a file; raises UnreadableText."""
    try:
        return text_in(file.read_bytes())
    except UnicodeDecodeError as error:
        raise UnreadableText(f"not UTF-8: {bad_byte(error)}") from error
    except OSError as error:
        raise UnreadableText(error.strerror or str(error)) from error


def read_toml(file: Path) -> tuple[dict[str, Any], TomlPlaces]:
    """What a file of TOML says, and on which lines; raises UnreadableText."""
    text = read_text(file)
    try:
        return tomllib.loads(text), TomlPlaces.of(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UnreadableText(f"not TOML: {str(error) or type(error).__name__}") from error


def problems_of(error: ValidationError) -> list[Problem]:
    """What has not the right form in a file that could be read, by its places."""
    return [Problem(each["loc"], each["msg"]) for each in validation.problems(error)]


def text_in(content: bytes) -> str:
    """The text of a file in UTF-8, without the byte order mark that editors on Windows begin it with.

    Raises UnicodeDecodeError for another encoding.
    """
    return content.decode("utf-8-sig")


def line_of(error: UnicodeDecodeError) -> int:
    """The line of the first byte that is not UTF-8, from 1."""
    return error.object.count(b"\n", 0, error.start) + 1


def bad_byte(error: UnicodeDecodeError) -> str:
    """Where that byte is and what it is, as in "line 3 has the byte 0xfc"."""
    return f"line {line_of(error)} has the byte 0x{error.object[error.start]:02x}"


def trimmed(value: str) -> str:
    """A value without what editors, `echo` and secret stores put around it: spaces, ends of lines, the mark."""
    return value.strip().strip(_MARK).strip()

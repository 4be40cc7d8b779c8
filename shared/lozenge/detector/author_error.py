"""What an author's code raised, in words for its author: the error, and the line of that code that raised it."""

import re
import sysconfig
import traceback
from pathlib import Path

from lozenge.errors import LozengeError, first_line

_WORKER = "Traceback (most recent call last):"
"""How the text of an error begins that a Python worker of Spark reports."""
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')
_CALLED = re.compile(r"was called from\s*\n\s*(?P<file>\S+?):(?P<line>\d+)")
"""Where a column expression was written, if Spark records that."""
_LIBRARY, _PYTHON = str(Path(__file__).parents[1]), sysconfig.get_path("stdlib")

Frame = tuple[str, str, str]
"""File, line and function."""


def described(error: BaseException) -> str:
    """The error and its place, as in "ValueError: math domain error (big_cash.py line 31, in step)"."""
    if isinstance(error, LozengeError):
        return first_line(error)
    text = str(error)
    if _WORKER in text:
        report = text[text.rindex(_WORKER) :]
        frames = [(m["file"], m["line"], m["function"]) for m in _FRAME.finditer(report)]
        words = next((line for line in report.splitlines()[1:] if line.strip() and not line.startswith(" ")), "")
        return _with_place(words or first_line(error), _author_frame(frames))
    if written := _CALLED.search(text):
        return _with_place(first_line(error), (written["file"], written["line"], ""))
    if type(error).__module__.partition(".")[0] in ("pyspark", "py4j"):
        return first_line(error)
    found = [(f.filename, str(f.lineno), f.name) for f in traceback.extract_tb(error.__traceback__)]
    return _with_place(f"{type(error).__name__}: {error}".rstrip(": "), _author_frame(found))


def _author_frame(frames: list[Frame]) -> Frame | None:
    """The deepest frame in the folder of the first one that is not the platform's; libraries are elsewhere."""
    own = [frame for frame in frames if not _is_platform(frame[0])]
    if not own:
        return None
    first = Path(own[0][0])
    return [f for f in own if Path(f[0]) == first or (_in_folder(first) and Path(f[0]).is_relative_to(first.parent))][
        -1
    ]


def _is_platform(file: str) -> bool:
    """Whether the author did not write it: the library, Spark, and what comes with Python."""
    if file.startswith(_LIBRARY) or "/pyspark" in file:
        return True
    return file.startswith(_PYTHON) and "site-packages" not in file


def _in_folder(file: Path) -> bool:
    """Whether the neighbours of a file belong to the same detector: not where packages are installed."""
    return file.parent.name != "site-packages"


def _with_place(words: str, frame: Frame | None) -> str:
    if frame is None:
        return words
    file, line, function = frame
    return f"{words} ({Path(file).name} line {line}{f', in {function}' if function else ''})"

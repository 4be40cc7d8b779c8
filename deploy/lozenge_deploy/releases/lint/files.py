"""What a text file of a folder holds, or why it cannot be read."""

import ast
from importlib.util import decode_source
from pathlib import Path

from lozenge.process.text_files import line_of

MARK = b"\xef\xbb\xbf"
"""A byte order mark in UTF-8, as some editors on Windows write it at the start of a file."""


def text_of(file: Path) -> str:
    """The text of a file in UTF-8, with or without a byte order mark; raises ValueError for another encoding, OSError.

    Line ends are those of Unix.
    """
    try:
        return file.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"line {line_of(error)} is not UTF-8: save the file in that encoding") from error


def parsed(file: Path) -> ast.Module | str:
    """The syntax tree of a Python file, or why there is none."""
    try:
        return ast.parse(decode_source(file.read_bytes()), file.name)
    except FileNotFoundError:
        return "missing"
    except UnicodeDecodeError as error:
        return f"line {line_of(error)} is not {error.encoding.upper()}: save the file in that encoding"
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}" if error.lineno else str(error.msg)
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        return str(error)

"""What a text file of a folder holds, or why it cannot be read."""

import ast
from importlib.util import decode_source
from pathlib import Path

from lozenge.process.text_files import bad_byte, text_in

MARK = b"\xef\xbb\xbf"
"""A byte order mark in UTF-8, as some editors on Windows write it at the start of a file."""
_SAVE = "save it as UTF-8"


def text_of(file: Path) -> str:
    """The text of a file in UTF-8, with or without a byte order mark; raises ValueError for another encoding, OSError.

    Line ends are those of Unix.
    """
    try:
        return file.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(_not_utf8(error)) from error


def parsed(file: Path) -> ast.Module | str:
    """The syntax tree of a Python file, or why there is none."""
    content = b""
    try:
        content = file.read_bytes()
        if b"\0" in content:  # also UTF-16, of which each half of a character may be one of UTF-8
            line = content.count(b"\n", 0, content.index(b"\0")) + 1
            return _not_utf8_of(content) or f"not text: line {line} has the byte 0x00: {_SAVE}"
        return ast.parse(decode_source(content), file.name)
    except FileNotFoundError:
        return "missing"
    except UnicodeDecodeError as error:
        if error.encoding == "utf-8":
            return _not_utf8(error)
        return f"not {error.encoding}, which it declares: {bad_byte(error)}: {_SAVE}"
    except SyntaxError as error:
        if error.lineno:
            return f"line {error.lineno}: {error.msg}"
        return _not_utf8_of(content) or str(error.msg)  # Python looks for a declaration in its first two lines
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        return str(error)


def _not_utf8_of(content: bytes) -> str:
    """Why the content is not UTF-8; "" if it is."""
    try:
        text_in(content)
    except UnicodeDecodeError as error:
        return _not_utf8(error)
    return ""


def _not_utf8(error: UnicodeDecodeError) -> str:
    return f"not UTF-8: {bad_byte(error)}: {_SAVE}"

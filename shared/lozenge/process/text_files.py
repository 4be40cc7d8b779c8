"""Text that people write by hand in UTF-8: files that editors begin with a mark, values with ends of lines around."""

_MARK = "\ufeff"


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

"""The lines of a log file as the fields of a record. Pure; no content of a line is lost."""

import json
from datetime import UTC, datetime
from typing import Any

LINE_BYTES = 256 * 1024
"""The longest line; a longer one is cut into several."""

_LEVELS = {"warn": "warning", "fatal": "critical", "trace": "debug"}


def whole(chunk: bytes, *, ended: bool) -> list[bytes]:
    """The lines at the beginning of `chunk`, the next `LINE_BYTES` of a file, each with its newline.

    A last line without one is incomplete. It is returned once its writer has `ended`, or if it is too long; then it is
    cut between two characters of UTF-8.
    """
    *lines, rest = chunk.split(b"\n")
    if lines:
        return [line + b"\n" for line in lines]
    if len(chunk) < LINE_BYTES:
        return [rest] if ended and rest else []
    end = len(chunk) - 1
    while end > len(chunk) - 4 and chunk[end] & 0xC0 == 0x80:
        end -= 1
    return [chunk[:end]]


def fields(line: bytes) -> dict[str, Any]:
    """The keys of a JSON line; any other line as the event of a line at level info, of now.

    Levels have one spelling, that of Python: what a library calls "warn" or "FATAL" is "warning" or "critical".
    """
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    try:
        found = json.loads(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return _line("info", text)
    if "level" in found:
        level = str(found["level"]).lower()
        found["level"] = _LEVELS.get(level, level)
    return found


def dropped(count: int) -> dict[str, Any]:
    """The line that reports `count` dropped bytes."""
    return _line("warning", "log dropped") | {"bytes": count}


def _line(level: str, event: str) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return {"time": now, "level": level, "event": event}

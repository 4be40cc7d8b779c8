"""A process that outlives its starter: it leads a session of its own, and writes to a log, which says why it ended."""

import contextlib
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lozenge.errors import HINT, PROBLEM

_TAIL_BYTES = 16_384


def start_detached(
    command: Sequence[str], *, log: Path, folder: Path, environment: Mapping[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    """Starts `command` in `folder`; what it prints is appended to `log`. Raises OSError."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )


class LastError(NamedTuple):
    """Why a process ended, as far as its log says; empty if the log is."""

    message: str = ""
    hint: str = ""


def last_error(log: Path, since: int = 0) -> LastError:
    """The newest error of the program itself, else the newest of its JVM, else the last line; after byte `since`.

    An error that was printed for people has its problems and its hint below its message.
    """
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(since, log.stat().st_size - _TAIL_BYTES))
        lines = file.read().decode(errors="replace").strip().splitlines()
        entries = [_entry(line) for line in reversed(lines)]
        errors = [entry for entry in entries if entry.get("level") in ("error", "critical")]
        own = [entry for entry in errors if "logger" not in entry]
        for entry in [*own, *errors, *entries[:1]]:
            if "event" in entry:
                return LastError(str(entry["event"]), str(entry.get("hint") or ""))
        return _printed(lines)
    return LastError()


def _printed(lines: list[str]) -> LastError:
    """The error in the last lines, as `LozengeError` prints it."""
    hint = lines.pop().removeprefix(HINT) if len(lines) > 1 and lines[-1].startswith(HINT) else ""
    begin = len(lines) - 1
    while begin > 0 and lines[begin].startswith(PROBLEM):
        begin -= 1
    return LastError("\n".join(lines[begin:]), hint) if lines else LastError()


def _entry(line: str) -> dict[str, object]:
    """The fields of a log line; none if it is not a JSON object."""
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(line)
        return found if isinstance(found, dict) else {}
    return {}

"""The releases of a stream for people. Pure."""

from collections.abc import Mapping
from typing import Any

from lozenge.protocol.stream_releases import FOLDER, StreamState, release_name
from lozenge_deploy.observe.stream_history import Since, since_text

BRIEF = ("release", "state", "digest", "by", "reason", "since")


def release_rows(state: StreamState, since: Mapping[str, Since]) -> list[dict[str, Any]]:
    """One row for each release, the newest first, with the offsets from which on it was last in force."""
    numbers = [*sorted(state.releases, reverse=True)]
    if state.to_run == FOLDER or release_name(FOLDER) in since:
        numbers.append(FOLDER)
    return [_row(number, state, since) for number in numbers]


def in_force(state: StreamState) -> str:
    """The release that is to run, for one cell of a table; a refused one is named."""
    shown = release_name(state.to_run)
    asked, answer = state.deployment, state.answer
    if asked is not None and answer is None:
        return f"{shown} (requested)"
    if asked is not None and answer is not None and answer.problems:
        return f"{shown} ({release_name(asked.release)} is refused)"
    return shown


def _row(number: int, state: StreamState, since: Mapping[str, Since]) -> dict[str, Any]:
    name, release = release_name(number), state.releases.get(number)
    problems = state.answer.problems if state.answer is not None and state.answer.release == number else ()
    return {
        "release": name,
        "state": _state(number, state),
        "digest": release.id.digest if release is not None else None,
        "at": f"{release.at:%Y-%m-%d %H:%M:%S}" if release is not None else None,
        "by": release.by if release is not None else None,
        "reason": release.reason or None if release is not None else None,
        "since": since_text(since.get(name, {})) or None,
        "problems": list(problems) or None,
    }


def _state(number: int, state: StreamState) -> str | None:
    asked, answer = state.deployment, state.answer
    if asked is not None and number == asked.release and answer is None:
        return "requested"
    if asked is not None and number == asked.release and answer is not None and answer.problems:
        return "refused"
    return "in force" if number == state.to_run and (asked is None or answer is not None) else None

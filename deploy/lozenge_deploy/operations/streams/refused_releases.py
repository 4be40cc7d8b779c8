"""Which normaliser refuses the release that is requested of its stream, and why. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

from lozenge.errors import ConfigError
from lozenge.protocol.stream_releases import StreamState, release_name
from lozenge.streams.release_files import definition_of

_LONGEST = 160


class ReleaseRefusal(NamedTuple):
    """Why a release is refused, in one line, and what a person does next."""

    reason: str
    next: str


def refused_releases(states: Iterable[StreamState]) -> dict[str, ReleaseRefusal]:
    """Each refused release by the name of the normaliser that refuses it."""
    found = {}
    for state in states:
        if (refused := refusal(state)) is not None and (app := _app_of(state)) is not None:
            found[app] = refused
    return found


def refusal(state: StreamState) -> ReleaseRefusal | None:
    """Why the requested release of a stream is refused; None if it is not."""
    asked, answer = state.deployment, state.answer
    if asked is None or answer is None or not answer.problems:
        return None
    first, *others = answer.problems
    line = first.splitlines()[0]
    shown = line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
    more = f" (and {len(others)} more)" if others else ""
    name, good = release_name(asked.release), release_name(asked.fallback)
    return ReleaseRefusal(
        f"{name} of the stream {state.stream} is refused, {good} runs on: {shown}{more}",
        f"`lozenge stream releases {state.stream} -o json` has every problem; fix the folder and deploy it again, "
        f"or `lozenge stream rollback {state.stream}`",
    )


def _app_of(state: StreamState) -> str | None:
    """The normaliser of the stream, as the newest release says it that can be read: no release may change it."""
    for _, release in sorted(state.releases.items(), reverse=True):
        try:
            return definition_of(release.files, state.stream).app
        except ConfigError:
            continue
    return None

"""Which normaliser refuses the release that is requested of its stream, and why. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

from lozenge.protocol.stream_releases import StreamState, release_name
from lozenge_deploy.operations.streams.known_streams import kept_definition

_LONGEST = 160


class ReleaseRefusal(NamedTuple):
    """Why a release is refused, in one line, and what a person does next."""

    reason: str
    next: str


def refused_releases(states: Iterable[StreamState]) -> dict[str, ReleaseRefusal]:
    """Each refused release by the name of the normaliser that refuses it."""
    found = {}
    for state in states:
        if (refused := refusal(state)) is not None and (stream := kept_definition(state)) is not None:
            found[stream.app] = refused  # no release may change it
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

"""What an instance does about a request for a release: a pure decision over what is known and what it runs."""

from collections.abc import Collection
from enum import StrEnum
from typing import NamedTuple

from lozenge.protocol.stream_releases import StreamState


class RefusedRelease(NamedTuple):
    """A release that this instance cannot take, and the request for it."""

    revision: str
    number: int


class Action(StrEnum):
    """What to do: ANSWER the request, or PREPARE another release."""

    NOTHING = "nothing"
    ANSWER = "answer"
    PREPARE = "prepare"


class Step(NamedTuple):
    """An action on the release of that number."""

    action: Action
    number: int


def next_step(state: StreamState, runs: int, refused: Collection[RefusedRelease]) -> Step:
    """What an instance does that runs release number `runs`.

    What it has `refused` it does not try again before another request.
    """
    asked, wanted = state.deployment, state.to_run
    if asked is None:
        return Step(Action.NOTHING, runs)
    if state.answer is None and RefusedRelease(asked.revision, wanted) in refused:  # its own answer is still to come
        wanted = asked.fallback
    if wanted != runs and RefusedRelease(asked.revision, wanted) not in refused:
        return Step(Action.PREPARE, wanted)
    return Step(Action.NOTHING if state.answer is not None else Action.ANSWER, runs)

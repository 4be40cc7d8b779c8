"""What an instance does about a request, by what is known, what it runs and what it has refused."""

import pytest

from lozenge.protocol.stream_releases import StreamDeployment, StreamReport, StreamState
from lozenge_upstream.releases.next_step import Action, RefusedRelease, Step, next_step

ASKED = StreamDeployment("auth", "rev", 3, fallback=2)
BAD = ("wallet.toml: not TOML",)
MINE = RefusedRelease("rev", 3)


def state(problems: tuple[str, ...] | None) -> StreamState:
    """Release 3 is requested, and answered by these problems; None: not answered."""
    report = StreamReport("auth", "rev", 3, problems) if problems is not None else None
    return StreamState("auth", ASKED, report)


@pytest.mark.parametrize(
    ("known", "runs", "refused", "step"),
    [
        (StreamState("auth"), 0, (), Step(Action.NOTHING, 0)),
        (state(None), 2, (), Step(Action.PREPARE, 3)),
        (state(None), 3, (), Step(Action.ANSWER, 3)),
        (state(()), 3, (), Step(Action.NOTHING, 3)),
        (state(()), 2, (), Step(Action.PREPARE, 3)),
        # it has refused the release itself
        (state(None), 2, (MINE,), Step(Action.ANSWER, 2)),
        (state(BAD), 2, (MINE,), Step(Action.NOTHING, 2)),
        (state(()), 2, (MINE,), Step(Action.NOTHING, 2)),
        # another instance has refused what it has taken
        (state(BAD), 3, (), Step(Action.PREPARE, 2)),
        (state(BAD), 3, (RefusedRelease("rev", 2),), Step(Action.NOTHING, 3)),
        # an earlier request is no reason
        (state(None), 2, (RefusedRelease("rev-0", 3),), Step(Action.PREPARE, 3)),
    ],
)
def test_the_next_step(known: StreamState, runs: int, refused: tuple[RefusedRelease, ...], step: Step) -> None:
    assert next_step(known, runs, refused) == step

"""The releases of a stream as a person sees them."""

import pytest

from lozenge.protocol.stream_releases import FOLDER, StreamDeployment, StreamRelease, StreamReport, StreamState
from lozenge_deploy.operations.streams.release_table import in_force, release_rows

RELEASES = {number: StreamRelease("auth", number, {}, "ann", "why" if number == 2 else "") for number in (1, 2)}
BAD = ("wallet.toml: not TOML",)


def state(problems: tuple[str, ...] | None) -> StreamState:
    report = StreamReport("auth", "rev", 2, problems) if problems is not None else None
    return StreamState("auth", StreamDeployment("auth", "rev", 2, 1), report, RELEASES)


@pytest.mark.parametrize(
    ("problems", "states", "cell"),
    [
        (None, ["requested", None], "r2 (requested)"),
        ((), ["in force", None], "r2"),
        (BAD, ["refused", "in force"], "r1 (r2 is refused)"),
    ],
)
def test_a_release_is_requested_in_force_or_refused(
    problems: tuple[str, ...] | None, states: list[str | None], cell: str
) -> None:
    rows = release_rows(state(problems), {"r1": {"AUTH-JSON": {1: 8, 0: 7}}})
    assert [(row["release"], row["state"]) for row in rows] == [*zip(("r2", "r1"), states, strict=True)]
    assert in_force(state(problems)) == cell
    assert [row["since"] for row in rows] == [None, "AUTH-JSON 0:7 1:8"]
    assert rows[0]["problems"] == (list(BAD) if problems else None)
    assert (rows[0]["by"], rows[0]["reason"], rows[1]["reason"]) == ("ann", "why", None)


def test_the_folder_is_a_row_where_it_was_in_force() -> None:
    [row] = release_rows(StreamState("auth"), {})
    assert (row["release"], row["state"]) == ("folder", "in force")
    assert in_force(StreamState("auth")) == "folder"
    assert [row["release"] for row in release_rows(state(()), {"folder": {"AUTH-JSON": {0: FOLDER}}})] == [
        *("r2", "r1", "folder")
    ]

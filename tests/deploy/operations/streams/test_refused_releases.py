"""A release that upstream refuses is known by the name of its normaliser, with the reason in one line."""

from collections.abc import Mapping

import pytest

from lozenge.protocol.stream_releases import FOLDER, StreamDeployment, StreamRelease, StreamReport, StreamState
from lozenge.streams.release_files import files_of
from lozenge_deploy.operations.streams.refused_releases import refusal, refused_releases
from tests.streams import FOLDER as STREAMS_FOLDER

FILES = files_of(STREAMS_FOLDER / "auth")
BAD = ("auth_json: mcc: '(?P<x>' is no regular expression of Java's:\nUnknown look-behind", "a", "b")


def state(problems: tuple[str, ...] | None, releases: Mapping[int, StreamRelease], fallback: int = 1) -> StreamState:
    report = StreamReport("auth", "rev", 2, problems) if problems is not None else None
    return StreamState("auth", StreamDeployment("auth", "rev", 2, fallback), report, releases)


def release(number: int, files: dict[str, str]) -> dict[int, StreamRelease]:
    return {number: StreamRelease("auth", number, files)}


def test_a_refused_release_is_shown_with_its_first_problem_in_one_line() -> None:
    found = refusal(state(BAD, {}))
    assert found is not None
    assert found.reason == (
        "r2 of the stream auth is refused, r1 runs on: "
        "auth_json: mcc: '(?P<x>' is no regular expression of Java's: (and 2 more)"
    )
    assert "`lozenge stream releases auth -o json` has every problem" in found.next
    long = refusal(state(("x" * 500,), {}, FOLDER))
    assert long is not None
    assert ("folder runs on" in long.reason, long.reason.endswith("x...")) == (True, True)
    assert len(long.reason) < 250


@pytest.mark.parametrize("problems", [None, ()])
def test_what_is_requested_or_in_force_is_not_refused(problems: tuple[str, ...] | None) -> None:
    present = state(problems, release(1, FILES))
    assert refusal(present) is None
    assert refused_releases([present, StreamState("login")]) == {}


def test_its_normaliser_is_the_one_that_the_newest_readable_release_names() -> None:
    wrong = release(2, {"stream.toml": "app ="})
    assert refused_releases([state(BAD, release(1, FILES) | wrong)]).keys() == {"upstream"}
    renamed = FILES | {"stream.toml": FILES["stream.toml"].replace('app = "upstream"', "")}
    assert refused_releases([state(BAD, release(1, FILES) | release(2, renamed))]).keys() == {"upstream-auth"}
    assert refused_releases([state(BAD, wrong)]) == {}

"""Which release is requested, and which one stays in force if that is refused."""

import msgspec
import pytest

from lozenge.errors import ConfigError, UsageError
from lozenge.protocol.stream_releases import FOLDER, StreamDeployment, StreamRelease, StreamReport, StreamState
from lozenge_deploy.operations.streams.release_requests import LARGEST_RELEASE, deployment_of, rollback_of

RELEASES = {number: StreamRelease("auth", number, {"stream.toml": str(number)}) for number in (1, 2, 3)}
NEW = {"stream.toml": "new"}
BAD = ("wallet.toml: not TOML",)


def state(release: int, problems: tuple[str, ...] | None = (), fallback: int = FOLDER) -> StreamState:
    """A release is requested and was answered by these problems; None: it was not answered."""
    asked = StreamDeployment("auth", "rev", release, fallback)
    report = StreamReport("auth", "rev", release, problems) if problems is not None else None
    return StreamState("auth", asked, report, RELEASES)


def test_new_files_are_a_new_release_whose_fallback_is_that_in_force() -> None:
    wanted, release = deployment_of(state(2), NEW, "why")
    assert release is not None
    assert (release.number, release.files, release.reason) == (4, NEW, "why")
    assert (wanted.release, wanted.fallback, wanted.what) == (4, 2, "deploy")
    first, made = deployment_of(StreamState("auth"), NEW, "")
    assert made is not None
    assert (first.release, first.fallback, made.number) == (1, FOLDER, 1)


def test_files_that_were_released_before_are_that_release() -> None:
    wanted, release = deployment_of(state(3), RELEASES[1].files, "")
    assert (wanted.release, release) == (1, None)
    with pytest.raises(UsageError, match="its folder is r3, which is in force already"):
        deployment_of(state(3), RELEASES[3].files, "")


@pytest.mark.parametrize(
    ("present", "fallback"),
    [(state(3, BAD, fallback=2), 2), (state(3, None, fallback=2), 2), (state(3, (), fallback=2), 3)],
)
def test_what_was_refused_or_not_answered_is_no_fallback(present: StreamState, fallback: int) -> None:
    assert deployment_of(present, NEW, "")[0].fallback == fallback


def test_a_refused_release_can_be_requested_again() -> None:
    wanted, release = deployment_of(state(3, BAD, fallback=2), RELEASES[3].files, "")
    assert (wanted.release, wanted.fallback, release) == (3, 2, None)


def test_a_rollback_is_to_the_release_before_or_to_a_named_one() -> None:
    assert rollback_of(state(3), "", "")[0].release == 2
    assert rollback_of(state(3), "r1", "")[0].release == 1
    assert rollback_of(state(1), "", "")[0].release == FOLDER
    assert rollback_of(state(3), "folder", "")[0].release == FOLDER
    wanted, release = rollback_of(state(3, BAD, fallback=2), "", "slow")
    assert (wanted.release, wanted.what, wanted.reason, release) == (1, "rollback", "slow", None)


@pytest.mark.parametrize(
    ("present", "to", "why"),
    [
        (StreamState("auth"), "", "nothing was ever deployed"),
        (state(3), "r9", "there is no release r9"),
        (state(3), "r3", "r3 is in force already"),
    ],
)
def test_a_rollback_to_nothing_is_refused(present: StreamState, to: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        rollback_of(present, to, "")


def test_each_request_has_a_revision_of_its_own() -> None:
    one, other = (rollback_of(state(3), "", "")[0] for _ in range(2))
    assert one.revision != other.revision
    assert msgspec.structs.replace(one, revision="", at=other.at) == msgspec.structs.replace(other, revision="")


def test_a_release_is_one_record() -> None:
    with pytest.raises(ConfigError, match="more than 900,000 bytes"):
        deployment_of(state(3), {"stream.toml": "x" * (LARGEST_RELEASE + 1)}, "")

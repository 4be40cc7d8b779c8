from collections.abc import Callable
from pathlib import Path

import pytest

from lozenge.errors import UsageError
from lozenge.file_sources.definition import Format
from lozenge.protocol.file_positions import FileId, FilePosition, FileState
from lozenge.protocol.source_requests import SOURCES, SourceRequest, SourceRow, SourceState
from lozenge_deploy.operations.file_sources.changes import (
    deployment_of,
    paused,
    rate_changed,
    retried,
    rollback_of,
    scaled,
)
from tests.upstream.files.samples import source_of

NEW = SourceState("rows")
FIRST = source_of(Path("in"), Format.CSV)
SECOND = source_of(Path("in"), Format.CSV, rows=7)


def _after(state: SourceState, made: list[SourceRow]) -> SourceState:
    rows: dict[str, SourceRow] = {SOURCES.key_of(row).decode(): row for row in [*state.releases.values(), *made]}
    return SOURCES.state_of("rows", rows)


def _request(made: list[SourceRow]) -> SourceRequest:
    [request] = [row for row in made if isinstance(row, SourceRequest)]
    return request


def test_each_declaration_is_a_release_and_one_that_comes_back_is_the_same() -> None:
    first = _after(NEW, deployment_of(NEW, FIRST, "one"))
    second = _after(first, deployment_of(first, SECOND, "two"))
    again = deployment_of(second, FIRST, "back")
    assert (first.next_number(), second.next_number()) == (2, 3)
    assert [type(row) for row in again] == [SourceRequest]
    assert _request(again).release == 1
    assert second.release is not None
    assert second.release.definition() == SECOND


def test_what_is_deployed_already_is_refused() -> None:
    state = _after(NEW, deployment_of(NEW, FIRST, ""))
    with pytest.raises(UsageError, match="r1, which is deployed already"):
        deployment_of(state, FIRST, "")


def test_a_release_keeps_what_operators_have_requested() -> None:
    state = _after(NEW, deployment_of(NEW, FIRST, ""))
    state = _after(state, rate_changed(state, 500.0))
    state = _after(state, scaled(state, 3))
    state = _after(state, paused(state, True))
    request = _request(deployment_of(state, SECOND, ""))
    assert (request.release, request.rate, request.instances, request.paused) == (2, 500.0, 3, True)


def test_a_rollback_is_to_the_release_before_or_to_a_named_one() -> None:
    state = _after(NEW, deployment_of(NEW, FIRST, ""))
    with pytest.raises(UsageError, match="first release"):
        rollback_of(state, "")
    state = _after(state, deployment_of(state, SECOND, ""))
    assert _request(rollback_of(state, "")).release == 1
    assert _request(rollback_of(state, "r2")).release == 2
    with pytest.raises(UsageError, match="no release r9"):
        rollback_of(state, "r9")


@pytest.mark.parametrize(
    "change",
    [
        lambda state: rollback_of(state, ""),
        lambda state: rate_changed(state, 1.0),
        lambda state: paused(state, True),
        lambda state: scaled(state, 2),
        lambda state: retried(state, [], [], from_start=False),
    ],
)
def test_what_is_not_deployed_cannot_be_changed(change: Callable[[SourceState], object]) -> None:
    with pytest.raises(UsageError, match="not deployed"):
        change(NEW)


def test_more_instances_than_files_can_be_shared_by_are_refused() -> None:
    state = _after(NEW, deployment_of(NEW, FIRST, ""))
    assert _request(scaled(state, 8)).instances == 8
    for wrong in (0, 9):
        with pytest.raises(UsageError, match=f"{wrong} instances"):
            scaled(state, wrong)


def test_failed_files_are_retried_all_or_those_that_are_named() -> None:
    state = _after(NEW, deployment_of(NEW, FIRST, ""))
    positions = [
        FilePosition(path, FileId(1, 1), kind)
        for path, kind in {"a": FileState.FAILED, "b": FileState.FAILED, "c": FileState.DONE}.items()
    ]
    assert [*_request(retried(state, positions, [], from_start=False)).retries] == ["a", "b"]
    one = _request(retried(state, positions, ["b"], from_start=True)).retries
    assert {path: retry.from_start for path, retry in one.items()} == {"b": True}
    with pytest.raises(UsageError, match="not failed: c, d"):
        retried(state, positions, ["a", "c", "d"], from_start=False)

"""What is requested of sinks and tables, given what is deployed."""

import msgspec
import pytest

from lozenge.errors import UsageError
from lozenge.protocol.app_requests import AppRequest, AppState
from lozenge_deploy.operations.declarations.apps import deployment_of, paused, rollback_of, scaled, words_of
from lozenge_deploy.operations.declarations.releases import history_rows
from tests.deploy.operations.declarations.states import after, request_of

NEW = AppState("sink-last")
FIRST, SECOND = {"kind": "cache", "rows": 1}, {"kind": "cache", "rows": 2}
THIRD, FOURTH = {"kind": "cache", "rows": 3}, {"kind": "cache", "rows": 4}


def deployed(*declarations: dict[str, object], name: str = "sink-last") -> AppState:
    state = AppState(name)
    for declaration in declarations:
        state = after(state, deployment_of(state, declaration, "why"))
    return state


def rolled_back(state: AppState, to: str) -> AppRequest:
    return request_of(rollback_of(state, to, lambda declaration: declaration, lambda declaration, doing: None))


def test_a_new_declaration_is_a_release_and_one_that_was_released_is_that_release_again() -> None:
    state = deployed(FIRST, SECOND)
    assert ([*state.releases], request_of(deployment_of(state, FIRST, "")).release) == ([1, 2], 1)
    assert (state.releases[2].reason, state.releases[2].by != "") == ("why", True)
    with pytest.raises(UsageError, match="r2, which is deployed already"):
        deployment_of(state, SECOND, "")


def test_a_release_keeps_instances_and_pause_and_names_the_one_before_it() -> None:
    state = deployed(FIRST)
    state = after(state, scaled(state, 3, 4))
    state = after(state, paused(state, True))
    request = request_of(deployment_of(state, SECOND, ""))
    assert (request.release, request.previous, request.instances, request.paused) == (2, 1, 3, True)
    state = after(state, [request])
    assert request_of(paused(state, False)).previous == 1


def test_a_rollback_is_to_the_release_before_or_to_a_named_one() -> None:
    state = deployed(FIRST)
    with pytest.raises(UsageError, match="first release"):
        rolled_back(state, "")
    state = deployed(FIRST, SECOND)
    assert (rolled_back(state, "").release, rolled_back(state, "").previous) == (1, 2)
    with pytest.raises(UsageError, match="no release r9"):
        rolled_back(state, "r9")


def test_a_rollback_passes_over_a_release_that_was_rolled_back() -> None:
    state = deployed(FIRST, SECOND)
    state = after(state, [rolled_back(state, "")])
    state = after(state, deployment_of(state, THIRD, ""))
    assert (state.releases[3].follows, rolled_back(state, "").release) == (1, 1)
    state = after(state, deployment_of(state, FOURTH, ""))
    state = after(state, [rolled_back(state, "")])
    assert rolled_back(state, "").release == 1
    state = after(state, [rolled_back(state, "")])
    with pytest.raises(UsageError, match="r1 is its first release"):
        rolled_back(state, "")


def test_a_rollback_from_a_release_whose_record_names_none_before_it_is_to_the_number_before() -> None:
    state = deployed(FIRST, SECOND, THIRD)
    state = after(state, [msgspec.structs.replace(each, follows=0) for each in state.releases.values()])
    state = after(state, [AppRequest("sink-last", 3)])
    assert rolled_back(state, "").release == 2


def test_what_is_requested_already_is_no_change() -> None:
    state = deployed(FIRST)
    assert (paused(state, False), scaled(state, 1, 4)) == ([], [])


@pytest.mark.parametrize(
    ("state", "instances", "reason"),
    [
        (deployed(FIRST), 5, "they would share 4 partitions"),
        (deployed(FIRST), 0, "they would share 4 partitions"),
        (deployed({"source": "x"}, name="table-limits"), 2, "one loader reads the whole source"),
        (NEW, 2, "not deployed"),
    ],
)
def test_a_sink_has_several_instances_each_with_a_partition_and_a_table_has_one(
    state: AppState, instances: int, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        scaled(state, instances, 4)


def test_the_history_has_the_newest_release_first_and_says_which_is_deployed() -> None:
    state = deployed(FIRST, SECOND)
    rows = history_rows(state, words_of(state.name), lambda release: {"rows": release.declaration["rows"]})
    assert [(row["release"], row["deployed"], row["rows"]) for row in rows] == [("r2", "now", 2), ("r1", "", 1)]
    with pytest.raises(UsageError, match="`lozenge sink deploy`"):
        history_rows(NEW, words_of(NEW.name), lambda release: {})

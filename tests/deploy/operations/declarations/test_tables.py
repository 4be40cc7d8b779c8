"""A table is not released if a deployed detector could not read it, or if its source has no good version."""

import pytest

from lozenge.errors import LozengeError, UsageError
from lozenge.protocol.app_requests import AppState
from lozenge_deploy.operations.declarations.tables import deployment_of, require_good, rollback_of, unreadable
from tests.deploy.operations.declarations.states import after, request_of
from tests.tables import limits

NEW = AppState("table-limits")
WITHOUT_MOST = limits(columns="country string, since timestamp")


def test_a_detector_keeps_the_columns_that_it_reads() -> None:
    readers = {"spotter": "country string, most decimal(18,4)", "other": "country string"}
    assert list(unreadable(limits(), readers)) == []
    assert list(unreadable(WITHOUT_MOST, readers)) == ["spotter: the column most"]
    narrow = limits(columns="country string, most decimal(9,2), since timestamp")
    assert list(unreadable(narrow, readers)) == ["spotter: most as decimal(18,4), and not as decimal(9,2)"]
    with pytest.raises(UsageError, match="spotter: the column most"):
        deployment_of(NEW, WITHOUT_MOST, readers, "")


def test_an_earlier_release_is_checked_as_a_new_one_is() -> None:
    state = after(NEW, deployment_of(NEW, WITHOUT_MOST, {}, ""))
    state = after(state, deployment_of(state, limits(), {}, ""))
    checked = list[str]()
    made = rollback_of(state, "", {}, lambda table, doing: checked.append(doing))
    assert (request_of(made).release, checked) == (1, ["rolling the table limits back to r1"])
    with pytest.raises(UsageError, match="spotter: the column most"):
        rollback_of(state, "", {"spotter": "most decimal(18,4)"}, lambda table, doing: None)


def test_a_look_that_finds_no_good_version_is_an_error_with_every_problem() -> None:
    require_good({"state": "good", "problems": []}, "deploying")
    with pytest.raises(LozengeError) as refused:
        require_good({"state": "refused", "problems": ["one", "two"]}, "deploying")
    assert ("one" in str(refused.value), "two" in str(refused.value), refused.value.exit_code) == (True, True, 1)

"""Whose the lines of a host's log are."""

import pytest

from lozenge.host.log_attribution import app_of

TASK = "Executor task launch worker for task 0.0 in stage 3.0 (TID 7)"
QUERY = "stream execution thread for [id = 1, runId = 2]"


@pytest.mark.parametrize("thread", ["Thread-7", TASK, QUERY, QUERY.replace("[id", "a\nname [id")])
def test_a_thread_of_one_client_names_it(thread: str) -> None:
    assert app_of({"event": "x", "thread": thread, "app": "spotter"}) == "spotter"


@pytest.mark.parametrize(
    "thread", ["broadcast-exchange-0", "state-store-maintenance-task", "task-result-getter-0", None, 7]
)
def test_a_thread_that_serves_all_names_nobody(thread: object) -> None:
    assert app_of({"event": "x", "thread": thread, "app": "spotter"}) == "spark-host"


@pytest.mark.parametrize("app", [None, "", 7, ["a"]])
def test_a_line_without_a_client_is_the_hosts(app: object) -> None:
    assert app_of({"event": "x", "thread": TASK, "app": app}) == "spark-host"
    assert app_of({"event": "x"}) == "spark-host"

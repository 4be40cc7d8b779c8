"""What is said of a deployed sink, source or table: as requested, or why not."""

from typing import Any

import pytest

from lozenge.protocol.app_requests import APPS, AppRequest
from lozenge_deploy.observe.metrics_reader import Reading
from lozenge_deploy.operations.declarations.status import status_of

APP = "sink-last"


def reading(release: str, instances: int = 1, *, waits: bool = False) -> Reading:
    return Reading(instances, 0, 0, 0, 0, 0, None, None, 0, 0, 0, 0, 0, 0, 0, release, waits=waits)


@pytest.mark.parametrize(
    ("found", "request_", "phase", "release", "reason"),
    [
        (reading("r2"), AppRequest(APP, 2), "running", "r2", None),
        (reading("r1"), AppRequest(APP, 2), "running", "r1", "r2 is requested, and r1 runs"),
        (reading("r2", waits=True), AppRequest(APP, 2), "waiting", "r2", "does not exist yet"),
        (reading("r2", 0), AppRequest(APP, 2), "not running", "r2", "no process of it reports"),
        (None, AppRequest(APP, 2), "not running", "r2", "no process of it reports"),
        (None, AppRequest(APP, 2, paused=True), "paused", "r2", None),
    ],
)
def test_a_deployed_app_is_seen_whether_it_runs_or_not(
    found: Reading | None, request_: AppRequest, phase: str, release: str, reason: str | None
) -> None:
    said: dict[str, Any] = status_of(APP, APPS.state_of(APP, {APP: request_}), found)
    assert (said["phase"], said["release"]) == (phase, release)
    assert ("reason" in said) == (reason is not None) == ("next" in said)
    assert reason is None or reason in said["reason"]

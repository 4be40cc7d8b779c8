"""What `lozenge status` says of file sources, sinks and tables that are deployed: pure over requests and metrics."""

from typing import Any

from lozenge.protocol.declared_releases import AnyState, name_of
from lozenge_deploy.observe.metrics_reader import Reading


def status_of(app: str, state: AnyState, reading: Reading | None) -> dict[str, Any]:
    """Goal, phase and release of a deployed app; `reason` and `next` where it does not run as it is requested."""
    request = state.request
    assert request is not None
    wanted, runs = name_of(request.release), reading is not None and reading.instances > 0
    running = reading.release if reading is not None and runs else ""
    goal = "paused" if request.paused else "running"
    found = {"goal": goal, "phase": goal, "release": running or wanted}
    if request.paused:
        return found
    if not runs:
        return found | {
            "phase": "not running",
            "reason": f"{wanted} is deployed, and no process of it reports",
            "next": f"`lozenge logs {app}` has what it said last; `lozenge up` runs what is deployed",
        }
    if running and running != wanted:
        return found | {
            "reason": f"{wanted} is requested, and {running} runs",
            "next": f"it is taken within seconds; if not, `lozenge logs {app} --level error` says why",
        }
    if reading is not None and reading.waits:
        return found | {
            "phase": "waiting",
            "reason": "the topic that it reads does not exist yet",
            "next": f"`lozenge logs {app} --level warning` names it, and those that are near",
        }
    return found

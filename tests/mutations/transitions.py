"""Every transition of a job taken away, one at a time: a test of the job's states must turn red without it."""

import subprocess
import sys

from lozenge.job.lifecycle.job_state import TRANSITIONS, JobEvent, JobState
from tests.mutations import ROOT

TESTS = "tests/shared/job/lifecycle/test_job_loop.py"
COUNTED = f"{TESTS}::test_there_is_a_case_for_every_transition"
"""Compares the table with the cases, so it says nothing about what a transition does."""
_WITHOUT = """
import sys
import pytest
from lozenge.job.lifecycle.job_state import TRANSITIONS, JobEvent, JobState

del TRANSITIONS[JobState({state!r}), JobEvent({event!r})]
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", {tests!r}, "--deselect", {counted!r}]))
"""


def transitions() -> list[tuple[JobState, JobEvent]]:
    """Every entry of the table."""
    return list(TRANSITIONS)


def outcome(state: JobState, event: JobEvent) -> str:
    """What became of the tests without the transition: "red" is what it should be."""
    program = _WITHOUT.format(state=str(state), event=str(event), tests=TESTS, counted=COUNTED)
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    if run.returncode == 1 and " failed" in run.stdout:
        return "red"
    return "GREEN: nothing tests it" if run.returncode == 0 else f"not decided: {run.stdout[-300:]}{run.stderr[-300:]}"

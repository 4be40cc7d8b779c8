"""`python -m tests.mutations [--since COMMIT] [GUARD ...]`: 0 if every guard's test turns red without it, else 1.

Without names, each transition of a job is taken away too, see `transitions`.
With `--since` only guards whose patch, patched sources or test's file have changed since that commit.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from lozenge_deploy.cli.printing.output import OutputFormat, show
from tests.mutations import Guard, changed_since, copied, guards, transitions

JOB_STATE = "shared/lozenge/job/lifecycle/job_state.py"


def outcome(guard: Guard, folder: Path) -> str:
    """What became of its test: "red" is what it should be."""
    tree = copied(folder / guard.name)
    if complaint := guard.apply(tree):
        return f"the patch does not apply: {complaint.strip()}"
    run = guard.run(tree)
    if run.returncode == 1 and " failed" in run.stdout:
        return "red"
    return "GREEN: nothing tests it" if run.returncode == 0 else f"not decided: {run.stdout[-300:]}{run.stderr[-300:]}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("guards", nargs="*", metavar="GUARD")
    parser.add_argument("--since", metavar="COMMIT")
    given = parser.parse_args()
    wanted = given.guards
    chosen = [guard for guard in guards() if not wanted or guard.name in wanted]
    if unknown := set(wanted) - {guard.name for guard in chosen}:
        print(f"no such guard: {', '.join(sorted(unknown))}; there is {', '.join(g.name for g in guards())}")
        return 2
    if given.since:
        changed = changed_since(given.since)
        chosen = [guard for guard in chosen if guard.files() & changed]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for guard in chosen:
            began = time.monotonic()
            said = outcome(guard, Path(folder))
            print(f"{guard.name}: {said}", file=sys.stderr, flush=True)
            rows.append(
                {"guard": guard.name, "test": guard.test, "outcome": said, "s": round(time.monotonic() - began)}
            )
    if not wanted and (not given.since or {transitions.TESTS, JOB_STATE} & changed_since(given.since)):
        for state, event in transitions.transitions():
            began, said = time.monotonic(), transitions.outcome(state, event)
            name = f"{state} on {event}"
            print(f"{name}: {said}", file=sys.stderr, flush=True)
            rows.append(
                {"guard": name, "test": transitions.TESTS, "outcome": said, "s": round(time.monotonic() - began)}
            )
    show(rows, OutputFormat.TABLE)
    return 0 if all(row["outcome"] == "red" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

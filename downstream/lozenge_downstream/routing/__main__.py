"""`python -m lozenge_downstream.routing test [--secrets] FILE` and `... show FILE ALERT.json`; see `lozenge routes`.

Both print JSON. Secrets need not be at hand but for `--secrets`, which wants each where the file says that it is.
Exit codes: 0 as it should be, 1 an example is not as it says, 2 a file is wrong.
"""

import json
import sys
from pathlib import Path
from typing import Any

from lozenge.errors import LozengeError, UsageError
from lozenge_downstream.routing.examples import failures, way
from lozenge_downstream.routing.file import routing

SECRETS = "--secrets"


def test(file: Path, *, secrets: bool) -> int:
    """Runs the examples that stand in the file."""
    read = routing(file, secrets=secrets)
    failed = [{"example": place, "problem": problem} for place, problem in failures(read)]
    print(json.dumps({"examples": len(read.examples), "failed": failed}))
    return 1 if failed else 0


def show(file: Path, alert: Path) -> int:
    """Tells where the alert would go: JSON with its labels, or an alert as `lozenge peek -o json` prints it."""
    print(json.dumps(way(routing(file, secrets=False), _labels(alert))))
    return 0


def _labels(file: Path) -> dict[str, str]:
    try:
        given: Any = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"reading the alert {file}: {error}", hint='such as {"detector": "large_amount"}') from error
    if isinstance(given, list) and len(given) == 1:
        given = given[0]
    if not isinstance(given, dict):
        raise UsageError(f"reading the alert {file}: it holds no alert", hint='such as {"detector": "large_amount"}')
    entity, labels = given.get("entity"), given.get("labels")
    if isinstance(entity, dict):
        given |= {"entity": f"{entity.get('type')}:{entity.get('id')}", "entity_type": entity.get("type")}
    if isinstance(labels, dict):
        given = labels | given
    return {name: str(value) for name, value in given.items() if isinstance(value, str | int | float)}


def main() -> int:
    """The exit code."""
    verb, *rest = sys.argv[1:]
    files = [Path(text) for text in rest if text != SECRETS]
    try:
        return test(*files, secrets=SECRETS in rest) if verb == "test" else show(*files)
    except LozengeError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())

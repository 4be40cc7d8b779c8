"""`python -m lozenge_downstream.routing test [--secrets] FILE` and `... show FILE ALERT.json`; see `lozenge routes`.

Both print JSON. Only `--secrets` requires each secret where the file refers to it.
Exit codes: 0 valid, 1 an example fails, 2 a file is invalid.
"""

import codecs
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from lozenge.errors import LozengeError, UsageError
from lozenge_downstream.model import labels_of
from lozenge_downstream.routing.config import routing
from lozenge_downstream.routing.examples import failures, routes_of

SECRETS = "--secrets"


def test(file: Path, *, secrets: bool) -> int:
    """Runs the examples of the file."""
    read = routing(file, secrets=secrets)
    failed = [{"example": place, "problem": problem} for place, problem in failures(read)]
    print(json.dumps({"examples": len(read.examples), "failed": failed}))
    return 1 if failed else 0


def show(file: Path, alert: Path) -> int:
    """Prints the routes of an alert.

    Its file has the labels, or an alert with or without its record, as `lozenge peek -n 1 -o json` prints it.
    """
    print(json.dumps(routes_of(routing(file, secrets=False), _labels(alert))))
    return 0


def _labels(file: Path) -> dict[str, str]:
    doing, hint = f"reading the alert {file}", 'such as {"detector": "large_amount"}'
    try:
        given: Any = msgspec.json.decode(file.read_bytes().removeprefix(codecs.BOM_UTF8))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{doing}: {error}", hint=hint) from error
    if isinstance(given, list) and len(given) > 1:
        raise UsageError(f"{doing}: it holds {len(given)} of them", hint="`lozenge peek -n 1` prints one")
    if isinstance(given, list) and given:
        given = given[0]
    if not isinstance(given, dict):
        raise UsageError(f"{doing}: it holds no alert", hint=hint)
    in_record = isinstance(given.get("value"), dict)
    alert = given["value"] if in_record else given
    if in_record or "alert_id" in alert:
        try:
            return msgspec.convert(labels_of(alert), dict[str, str])
        except (KeyError, TypeError, msgspec.ValidationError):
            raise UsageError(f"{doing}: the record holds no alert, or an incomplete one", hint=hint) from None
    return _written(alert, doing)


def _written(labels: dict[str, Any], doing: str) -> dict[str, str]:
    """Labels as a person writes them; the entity may have its two parts."""
    match labels.get("entity"):
        case {"type": str(type), "id": str(id), **rest} if not rest:
            labels = labels | {"entity_type": type, "entity": f"{type}:{id}"}
    if wrong := [name for name, value in labels.items() if not isinstance(value, str)]:
        raise UsageError(f"{doing}: {', '.join(wrong)}: labels are text", hint='such as {"severity": "high"}')
    return labels


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

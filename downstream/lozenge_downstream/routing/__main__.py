"""`python -m lozenge_downstream.routing test [OPTION]... FILE` and `... show FILE ALERT.json`; see `lozenge routes`.

Both print JSON. Only `--secrets` requires each secret where the file refers to it. `--label NAME` names a label that
alerts have, so that no warning does.
Exit codes: 0 valid, 1 an example fails, 2 a file is invalid.
"""

import argparse
import codecs
import json
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec

from lozenge.errors import LozengeError, UsageError
from lozenge_downstream.model import labels_of
from lozenge_downstream.routing.config import routing
from lozenge_downstream.routing.examples import failures, routes_of
from lozenge_downstream.routing.warnings import warnings_of


def test(file: Path, *, secrets: bool, labels: Collection[str]) -> int:
    """Runs the examples of the file, and warns of what is probably not meant."""
    read = routing(file, secrets=secrets)
    failed = [{"example": place, "problem": problem} for place, problem in failures(read)]
    print(json.dumps({"examples": len(read.examples), "failed": failed, "warnings": warnings_of(read, labels)}))
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
    parser = argparse.ArgumentParser(prog="python -m lozenge_downstream.routing")
    verbs = parser.add_subparsers(dest="verb", required=True)
    testing, showing = verbs.add_parser("test"), verbs.add_parser("show")
    testing.add_argument("--secrets", action="store_true")
    testing.add_argument("--label", action="append", default=[])
    for verb in (testing, showing):
        verb.add_argument("file", type=Path)
    showing.add_argument("alert", type=Path)
    given = parser.parse_args()
    try:
        if given.verb == "show":
            return show(given.file, given.alert)
        return test(given.file, secrets=given.secrets, labels=given.label)
    except LozengeError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())

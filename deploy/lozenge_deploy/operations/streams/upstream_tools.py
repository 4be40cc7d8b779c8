"""What upstream's own code says of a stream: its tools are processes, because they need Spark or a database."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from lozenge.errors import BrokerUnavailable, ConfigError, LozengeError, UsageError


def asked(
    doing: str, module: str, *arguments: str, given: bytes = b"", variables: Mapping[str, str] | None = None
) -> Any:
    """What a module of upstream answers as JSON, with `variables` besides ours; raises the error that it ends with."""
    environment = {**os.environ, **(variables or {})}
    run = subprocess.run([sys.executable, "-m", module, *arguments], input=given, capture_output=True, env=environment)
    if run.returncode:
        said = run.stderr.decode(errors="replace").strip().removeprefix("lozenge: ")
        kinds: dict[int, type[LozengeError]] = {kind.exit_code: kind for kind in (UsageError, BrokerUnavailable)}
        raise kinds.get(run.returncode, LozengeError)(
            said or f"{doing}: the process ended with exit code {run.returncode}"
        )
    return json.loads(run.stdout)


def check_mappings(stream: str) -> list[dict[str, Any]]:
    """Source and raw topic of each mapping of a stream; raises ConfigError with every problem of its folder."""
    found = asked(f"checking stream {stream}", "lozenge_upstream.check_mappings", stream)
    if found["problems"]:
        raise ConfigError(
            f"checking the stream {stream}: {len(found['problems'])} problem(s)",
            problems=found["problems"],
            hint="fix what is named; the pages on streams and on mappings have every key",
        )
    mappings: list[dict[str, Any]] = found["mappings"]
    return mappings


def run_samples(stream: str, source: str = "", *, or_none: bool = False) -> dict[str, Any]:
    """What became of each sample of a stream, or of one `source`: `samples`, each with its `failures`, and `without`.

    `without` are the sources that have none. Raises UsageError if there are no samples, unless `or_none`, and if a
    mapping or a sample is wrong.
    """
    given = (stream, *([source] if source else []), *(["--or-none"] if or_none else []))
    found: dict[str, Any] = asked(f"testing the stream {stream}", "lozenge_upstream.check_samples", *given)
    return found

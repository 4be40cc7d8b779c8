"""What a new detector reads that is to read the alerts of another one."""

from collections.abc import Sequence
from pathlib import Path

from lozenge.errors import UsageError
from lozenge.streams.alert_stream import alert_stream
from lozenge.streams.definition import StreamDefinition
from lozenge_deploy.releases.lint.alert_input import key_of_alerts
from lozenge_deploy.releases.lint.names import name_problem


def new_alert_input(detectors: Path, name: str, there: str, key: str, streams: Sequence[str]) -> StreamDefinition:
    """What the detector `name` reads: the alerts of the detector `there`, by `key`, else by that of its folder.

    Raises UsageError for a name that no detector has, for a `key` that the alerts do not have, if neither `key` nor a
    folder in `detectors` says what they are about, or if `streams` are named too.
    """
    doing = f"making detector {name}"
    if streams:
        raise UsageError(f"{doing}: it reads a stream, or alerts of {there}", hint="give --stream or --alerts-of")
    if there == name:
        raise UsageError(f"{doing}: it cannot read its own alerts", hint="name another detector by --alerts-of")
    if problem := name_problem(there):
        raise UsageError(f"{doing}: no detector is called {there!r}: {problem}", hint="--alerts-of names a detector")
    found = key_of_alerts(detectors / there)
    if found and key not in ("", found):
        raise UsageError(f"{doing}: the alerts of {there} are by {found}, not by {key}", hint=f"--key {found}")
    if not (found or key):
        raise UsageError(
            f"{doing}: {detectors} has no {there}, which would say what its alerts are about",
            hint="name their entity, such as --key user",
        )
    return alert_stream(there, found or key)

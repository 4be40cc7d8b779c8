"""Sinks and loaders of tables of the platform on this machine: paused, resumed, retired."""

from pathlib import Path
from typing import Any

from lozenge.apps import is_table
from lozenge.errors import UsageError
from lozenge.process.waiting import wait_until
from lozenge_deploy.cli.printing.output import OutputFormat, say
from lozenge_deploy.local.running_platform import running as running_platform

_POLL_SECONDS = 0.2
_SINKS, _TABLES = ("sink", "sinks", "paused"), ("table", "tables", "paused_tables")
"""What it is, and the names of the requests that say which run and which of them are paused."""
_STAYS = {"sink": "it continues at its position", "table": "its last good version stays"}


def switch_program(folder: Path, app: str, verb: str, limit: float | None, dry_run: bool, output: OutputFormat) -> None:
    """Pauses, resumes or retires a sink or a loader of the platform in `folder`, now and at its next starts.

    A sink that stops commits what its topics have by then; the rows of a table stay. Waits up to `limit` seconds, or
    not at all. Raises UsageError for one that was not started and for other verbs, ChangeTimedOut.
    """
    from lozenge_deploy.local.platform_request import request, requested

    folder, name = folder.absolute(), app.partition("-")[2]
    kind, running, stopped = _TABLES if is_table(app) else _SINKS
    if verb not in ("pause", "resume", "retire"):
        raise UsageError(
            f"cannot {verb} {app}: it is a {kind}, and no release of it is deployed",
            hint=f"`lozenge pause {app}`, then `lozenge resume {app}` starts it again",
        )
    present = requested(folder)
    names: list[str] = getattr(present, running)
    held: list[str] = getattr(present, stopped)
    if name not in names:
        raise UsageError(
            f"cannot {verb} {app}: the platform in {folder} does not run it",
            hint=f"`lozenge up --{kind} {name}` starts it; --folder names another platform",
        )
    paused = [each for each in held if each != name] + [name] * (verb == "pause")
    left = [each for each in names if verb != "retire" or each != name]
    changed = (left, paused) != (names, held)
    row = {"app": app, "verb": verb, "changed": changed}
    if dry_run or not changed:
        say(f"{app}: {f'would {verb}' if changed else 'no change'}", row, output)
        return
    request(folder, **{running: left, stopped: paused})
    if limit is not None and _programs(folder) is not None:
        _await(folder, app, limit, runs=verb == "resume")
    say(f"{app}: {verb} done; {_STAYS[kind]}", row, output)


def _await(folder: Path, app: str, limit: float, *, runs: bool) -> None:
    from lozenge_deploy.control.client import ChangeTimedOut

    if not wait_until(lambda: (app in (_programs(folder) or {})) == runs, limit, poll=_POLL_SECONDS):
        raise ChangeTimedOut(
            f"changing {app}: not done after {limit:.0f} s", hint="it continues; `lozenge status` shows its progress"
        )


def _programs(folder: Path) -> dict[str, Any] | None:
    """The programs of the platform by name; None if it does not run."""
    state = running_platform(folder)
    return None if state is None else state.get("programs")

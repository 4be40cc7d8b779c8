"""The verbs for the platform on this machine: up and down; and scale, of upstream."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from lozenge.contracts.topics import RAW_PARTITIONS
from lozenge.errors import LozengeError, UsageError
from lozenge_deploy.cli.options import DRY_RUN, OUTPUT, Format, tell

FOLDER = Annotated[Path, typer.Option(help="Where everything lies: topics, store, logs, jobs.")]
DEFAULT = Path(".lozenge")
UP_SECONDS, DOWN_SECONDS = 180.0, 120.0
_STATE, _LOG = "platform.json", "platform.log"


def up(
    port: Annotated[int, typer.Option(help="Of the broker, on loopback.")] = 9092,
    folder: FOLDER = DEFAULT,
    feed: Annotated[float, typer.Option(min=0, help="Made-up records a second; 0 for none.")] = 0.0,
    dry_run: DRY_RUN = False,
    output: OUTPUT = Format.TABLE,
) -> None:
    """Start broker, upstream, downstream and agent on this machine, in the background."""
    folder = folder.absolute()
    if (running := _running(folder)) is not None:
        tell(f"it runs already, with a broker at {running['bootstrap']}", running, output)
        return
    if dry_run:
        fed = f", and made-up records, {feed:g} a second" if feed else ""
        said = f"would start a broker at 127.0.0.1:{port}, upstream, downstream and the agent in {folder}{fed}"
        tell(said, {"folder": str(folder), "bootstrap": f"127.0.0.1:{port}", "feed": feed, "pid": None}, output)
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _STATE).unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "lozenge_deploy.local.platform",
        str(folder),
        "--port",
        str(port),
        "--feed",
        str(feed),
    ]
    with (folder / _LOG).open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=folder
        )
    deadline = time.monotonic() + UP_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise LozengeError(f"starting the platform: {_last_words(folder)}", hint=f"see {folder / _LOG}")
        if (state := _running(folder)) is not None:
            if state["failed"]:
                name, words = next(iter(state["failed"].items()))
                raise LozengeError(
                    f"starting {name}: {words}", hint=f"see {folder / 'logs'}; `lozenge down` ends the rest"
                )
            up = f"up, with a broker at {state['bootstrap']}; next: `lozenge deploy NAME`, `lozenge status`"
            tell(up, state, output)
            return
        time.sleep(0.2)
    raise LozengeError(f"starting the platform: not up after {UP_SECONDS:.0f} s", hint=f"see {folder / _LOG}")


def down(folder: FOLDER = DEFAULT, dry_run: DRY_RUN = False, output: OUTPUT = Format.TABLE) -> None:
    """End all that `up` started, the jobs too. What is deployed comes back with the next `up`."""
    folder = folder.absolute()
    if (state := _running(folder)) is None:
        raise UsageError(f"ending the platform: nothing runs in {folder}", hint="`lozenge up` starts it")
    if dry_run:
        tell(f"would end process {state['pid']} and all that it started; topics and store stay", state, output)
        return
    os.kill(state["pid"], signal.SIGTERM)
    deadline = time.monotonic() + DOWN_SECONDS
    while _alive(state["pid"]) and time.monotonic() < deadline:
        time.sleep(0.2)
    if _alive(state["pid"]):
        raise LozengeError(f"ending the platform: process {state['pid']} has not ended", hint=f"see {folder / _LOG}")
    tell("down; topics and store stay", {"folder": str(folder), "pid": None}, output)


def scale_upstream(folder: Path, instances: int, limit: float | None, dry_run: bool, output: Format) -> None:
    """Asks for so many instances of upstream, which the platform in `folder` keeps now and after every start.

    Waits `limit` seconds (None: not at all) until they run, if the platform does.
    """
    from lozenge_deploy.local.upstream_replicas import want_instances, wanted_instances
    from lozenge_deploy.operations.scaling import outside

    folder = folder.absolute()
    if refusal := outside("upstream", instances, RAW_PARTITIONS):
        raise refusal
    if not (folder / _STATE).exists():
        raise UsageError(
            f"scaling upstream: {folder} is no platform's",
            hint="--folder names that of `lozenge up`; where containers run it, `docker compose up --scale upstream=N`",
        )
    before = wanted_instances(folder)
    if not dry_run:
        want_instances(folder, instances)
    runs = _running(folder) is not None
    when = "the platform sees to it" if runs else "from the platform's next start on"
    if runs and limit is not None and not dry_run:
        _await_upstreams(folder, instances, limit)
        when = "it is so now" if instances <= before else "started; the new ones get partitions once their Spark is up"
    many = f"{instances} instance{'s' if instances > 1 else ''}"
    said = f"upstream: {'would be ' if dry_run else ''}{many}, {before} before; {when}"
    tell(said, {"app": "upstream", "instances": instances, "before": before}, output)


def _await_upstreams(folder: Path, instances: int, limit: float) -> None:
    """Until exactly so many run; raises OutOfTime, or LozengeError if the platform ends or gives one up."""
    from lozenge_deploy.control.client import OutOfTime
    from lozenge_deploy.local.upstream_replicas import app_of_program, instance_names
    from lozenge_deploy.supervision.supervisor import State

    wanted, deadline = dict.fromkeys(instance_names(instances), State.RUNNING), time.monotonic() + limit
    while (state := _running(folder)) is not None and time.monotonic() < deadline:
        found = {name: said for name, said in state["programs"].items() if app_of_program(name) == "upstream"}
        if found == wanted:
            return
        if lost := [name for name, said in found.items() if said == State.FAILED]:
            raise LozengeError(f"scaling upstream: {lost[0]} failed: {state['failed'][lost[0]]}", hint="see its log")
        time.sleep(0.2)
    if state is None:
        raise LozengeError("scaling upstream: the platform has ended", hint=f"see {folder / _LOG}")
    raise OutOfTime(f"scaling upstream: not done after {limit:.0f} s", hint="it goes on; `lozenge status` tells")


def _running(folder: Path) -> dict[str, Any] | None:
    """What the platform in `folder` told last; None if it does not run."""
    try:
        state: dict[str, Any] = json.loads((folder / _STATE).read_text())
    except (OSError, ValueError):
        return None
    return state if _alive(state["pid"]) else None


def _alive(pid: int) -> bool:
    """Whether the platform still runs as that process."""
    import psutil

    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and "lozenge_deploy.local.platform" in process.cmdline()
    except psutil.Error:
        return False


def _last_words(folder: Path) -> str:
    lines = (folder / _LOG).read_text(errors="replace").strip().splitlines()
    try:
        said = json.loads(lines[-1])
        return f"{said['event']}\n  -> {said.get('hint', '')}"
    except (ValueError, KeyError, IndexError, TypeError):
        return lines[-1] if lines else "it said nothing"

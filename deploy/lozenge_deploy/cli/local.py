"""Commands for the platform on this machine: up, down, and the scaling of normalisers."""

import math
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from lozenge.errors import ConfigError, LozengeError, UsageError
from lozenge.process.detached import last_error, start_detached
from lozenge.process.waiting import wait_until
from lozenge_deploy.cli.options import DRY_RUN, OUTPUT
from lozenge_deploy.cli.printing.output import OutputFormat, say
from lozenge_deploy.cli.printing.terminal import echo
from lozenge_deploy.cli.sink import wanted as apps
from lozenge_deploy.local.running_platform import (
    BOOTSTRAP_VARIABLE,
    DEFAULT,
    STATE,
    alive,
    bootstrap_near,
    environment_of,
    running,
)

FOLDER = Annotated[Path, typer.Option(help="The platform's folder: topics, store, logs, jobs.")]
UP_SECONDS, DOWN_SECONDS, CHANGE_SECONDS = 180.0, 120.0, 120.0
_LOG = "platform.log"
_POLL_SECONDS = 0.2


def up(
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="The broker's port, on loopback; 0 for any that is free.")
    ] = None,
    folder: FOLDER = DEFAULT,
    feed: Annotated[float | None, typer.Option(min=0, help="Generated records per second; 0 for none.")] = None,
    routing: Annotated[
        str | None, typer.Option(envvar="LOZENGE_DOWNSTREAM_ROUTING", help='The notifier\'s routing file; "" for none.')
    ] = None,
    sink: Annotated[
        list[str] | None, typer.Option("--sink", help="A sink of downstream/sinks to deploy; once for each.")
    ] = None,
    table: Annotated[
        list[str] | None, typer.Option("--table", help="A table of upstream/tables to deploy; once for each.")
    ] = None,
    dry_run: DRY_RUN = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Start broker, upstream, downstream and agent on this machine, in the background.

    Topics, the notifier's store, jobs and logs are in the folder, and what is requested here: a later `up` without an
    option repeats it. On a running platform --feed and --routing take effect at once, and new streams get their
    normalisers. A sink or table that is not deployed is deployed; `lozenge sink` and `lozenge table` change it. The
    notifier's API listens at 127.0.0.1:8470, metrics at 127.0.0.1:9464. docs/reference/files-and-ports.md lists every
    file and port. Commands find the platform of the folder .lozenge here or above; for another one it says which
    variable they need.
    """
    from lozenge_deploy.local.platform_request import requested

    folder = folder.absolute()
    if feed is not None and not math.isfinite(feed):
        raise UsageError(f"reading --feed: {feed} is no rate", hint="write it as --feed 50")
    state = running(folder)
    given = {
        "port": port,
        "feed": feed,
        "routing": _sound(routing),
        "streams": _streams(state),
    }
    wanted_apps = apps.wanted_apps(sink, table)
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    before = requested(folder)
    if state is not None:
        changes = {name: value for name, value in changes.items() if value != getattr(before, name)}
        said, state = _change(folder, state, changes, dry_run)
        _say(said, _deploy(folder, state, wanted_apps, dry_run), state, output)
        return
    wanted = replace(before, **changes)
    if dry_run:
        sentence = f"would start a broker at 127.0.0.1:{wanted.port}, upstream, downstream and the agent in {folder}"
        row = {"folder": str(folder), "bootstrap": f"127.0.0.1:{wanted.port}", "pid": None, "requested": asdict(wanted)}
        say("; ".join([sentence, str(wanted), *_deploy(folder, None, wanted_apps, dry_run)]), row, output)
        return
    state = _start(folder, changes)
    said = f"up, with a broker at {state['bootstrap']}; {wanted}"
    deployed = _deploy(folder, state, wanted_apps, dry_run)
    _say(said, [*deployed, "next: `lozenge deploy NAME`, `lozenge status`"], state, output)


def _say(said: str, more: list[str], state: dict[str, Any], output: OutputFormat) -> None:
    say("; ".join([said, *more]), state, output)
    _show_address(state["bootstrap"])


def _deploy(folder: Path, state: dict[str, Any] | None, wanted: "list[apps.Wanted]", dry_run: bool) -> list[str]:
    """Deploys what is not deployed, on the platform in `folder`, and waits until it runs; what was done of each."""
    from lozenge.kafka.settings import KafkaSettings

    if not wanted or dry_run or state is None:
        return [f"{each.app}: would be deployed unless it is already" for each in wanted]
    apps.require_variables(wanted, environment_of(state["pid"]))
    kafka = KafkaSettings.local(state["bootstrap"])
    sentences, names = apps.deployed_now(kafka, wanted), {each.app for each in wanted}

    def run() -> bool:
        now = running(folder)
        return now is None or names <= now["programs"].keys() or bool(names & now["failed"].keys())

    if not any("is paused" in each for each in sentences):
        wait_until(run, CHANGE_SECONDS, poll=_POLL_SECONDS)
        now = running(folder) or state
        _refuse_failed(folder, {name: problem for name, problem in now["failed"].items() if name in names})
    return sentences


def _show_address(bootstrap: str) -> None:
    """Says how later commands find this broker, if they do not by themselves."""
    from lozenge.kafka.settings import LOOPBACK

    if os.environ.get(BOOTSTRAP_VARIABLE, bootstrap_near(Path.cwd()) or LOOPBACK) != bootstrap:
        echo(f"commands here find it after `export {BOOTSTRAP_VARIABLE}={bootstrap}`", err=True)


def _streams(state: dict[str, Any] | None) -> list[str] | None:
    """The names of the streams here; None where there are none, or where the platform that runs takes no new ones."""
    from lozenge.streams.project import Streams, streams_folder

    if state is not None and "streams" not in state["requested"]:  # it is of an earlier version
        return None
    try:
        here = streams_folder()
    except ConfigError:
        return None
    return [stream.name for stream in Streams.of(here).definitions]


def _sound(file: str | None) -> str | None:
    """The whole path of a routing file that the notifier accepts; raises UsageError."""
    from lozenge_deploy.operations.notifier_client import routing

    if not file:
        return file
    if routing("test", Path(file))[0]:
        raise UsageError(f"reading {file}: one of its examples fails", hint=f"`lozenge routes test --file {file}`")
    return str(Path(file).absolute())


def _change(folder: Path, state: dict[str, Any], changes: dict[str, Any], dry_run: bool) -> tuple[str, dict[str, Any]]:
    """Makes a running platform do what is requested now: what was done, and its state then.

    Raises UsageError for what only a start can change.
    """
    from lozenge_deploy.local.platform_request import request, requested

    if "port" in changes and changes["port"] != int(state["bootstrap"].rpartition(":")[2]):
        raise UsageError(
            f"changing the broker's port to {changes['port']}: it runs at {state['bootstrap']}",
            hint="`lozenge down` first; its topics stay",
        )
    before = requested(folder)
    wanted = replace(before, **changes)
    if dry_run or not changes:
        would = f"would change to {wanted}" if changes else f"no change: {before}"
        return f"already running, with a broker at {state['bootstrap']}; {would}", state
    request(folder, **changes)

    def has_changed() -> bool:
        return (now := running(folder)) is None or now.get("requested") == asdict(wanted)

    new = [name for name in wanted.streams if name not in before.streams]
    if wait_until(has_changed, CHANGE_SECONDS, poll=_POLL_SECONDS) and (now := running(folder)) is not None:
        _refuse_failed(folder, now["failed"])
        added = f"; new streams: {', '.join(new)}" if new and before.streams else ""
        return f"running, with a broker at {now['bootstrap']}; {wanted}{added}", now
    raise LozengeError(f"changing the platform: not done after {CHANGE_SECONDS:.0f} s", hint=f"see {folder / _LOG}")


def _refuse_failed(folder: Path, failed: Mapping[str, str]) -> None:
    """Raises LozengeError for the first of the programs that have failed, each with its problem."""
    for name, problem in failed.items():
        raise LozengeError(f"starting {name}: {problem}", hint=f"see {folder / 'logs'}; `lozenge down` stops the rest")


def _start(folder: Path, changes: dict[str, Any]) -> dict[str, Any]:
    """Starts the platform's process; its status once it is up."""
    from lozenge.streams.project import streams_folder
    from lozenge_deploy.local.platform_request import request

    request(folder, **changes, held="")  # a reset of offsets that was killed holds its normaliser no longer
    (folder / STATE).unlink(missing_ok=True)
    command = [sys.executable, "-m", "lozenge_deploy.local.platform", str(folder), "--streams", str(streams_folder())]
    process = start_detached(command, log=folder / _LOG, folder=folder)
    wait_until(lambda: process.poll() is not None or running(folder), UP_SECONDS, poll=_POLL_SECONDS)
    if process.poll() is not None:
        error = last_error(folder / _LOG)
        hint = error.hint or f"see {folder / _LOG}"
        raise LozengeError(f"starting the platform: {error.message or 'its log is empty'}", hint=hint)
    if (state := running(folder)) is not None:
        _refuse_failed(folder, state["failed"])
        return state
    raise LozengeError(f"starting the platform: not up after {UP_SECONDS:.0f} s", hint=f"see {folder / _LOG}")


def down(folder: FOLDER = DEFAULT, dry_run: DRY_RUN = False, output: OUTPUT = OutputFormat.TABLE) -> None:
    """Stop everything that `up` started, jobs included; the next `up` starts the deployed detectors again."""
    folder = folder.absolute()
    if (state := running(folder)) is None:
        raise UsageError(f"stopping the platform: nothing runs in {folder}", hint="`lozenge up` starts it")
    if dry_run:
        say(f"would stop process {state['pid']} and all that it started; topics and store stay", state, output)
        return
    os.kill(state["pid"], signal.SIGTERM)
    if not wait_until(lambda: not alive(state["pid"]), DOWN_SECONDS, poll=_POLL_SECONDS):
        raise LozengeError(f"stopping the platform: process {state['pid']} still runs", hint=f"see {folder / _LOG}")
    say("down; topics and store stay", {"folder": str(folder), "pid": None}, output)


def scale_upstream(
    folder: Path, app: str, instances: int, limit: float | None, dry_run: bool, output: OutputFormat
) -> None:
    """Sets how many instances of the normaliser `app` the platform in `folder` runs, now and after every start.

    Waits up to `limit` seconds (None: not at all) until they run, if the platform does.
    """
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.streams.project import Streams
    from lozenge_deploy.local.platform_request import request, requested
    from lozenge_deploy.operations.scaling import out_of_range

    folder = folder.absolute()
    Streams.load().of_app(app)
    if refusal := out_of_range(app, instances, KafkaSettings.load().partitions):
        raise refusal
    if not (folder / STATE).exists():
        raise UsageError(
            f"scaling {app}: {folder} is not a platform's folder",
            hint=f"--folder names that of `lozenge up`; with Docker Compose use `docker compose up --scale {app}=N`",
        )
    present = requested(folder)
    before = present.instances(app)
    if not dry_run:
        request(folder, normalisers=present.normalisers | {app: instances}, held="")
    runs = running(folder) is not None
    when = "pending" if runs else "from the platform's next start"
    if runs and limit is not None and not dry_run:
        _await_upstreams(folder, app, instances, limit)
        when = "done" if instances <= before else "started; the new ones get partitions once their Spark runs"
    many = f"{instances} instance{'s' if instances > 1 else ''}"
    sentence = f"{app}: {'would be ' if dry_run else ''}{many}, {before} before; {when}"
    say(sentence, {"app": app, "instances": instances, "before": before}, output)


@contextmanager
def no_upstream(folder: Path, app: str) -> Iterator[None]:
    """The platform in `folder`, if it runs, runs no instance of the normaliser `app` within the block."""
    from lozenge_deploy.local.platform_request import request

    folder = folder.absolute()
    if running(folder) is None:
        yield
        return
    request(folder, held=app)
    try:
        yield
    finally:
        request(folder, held="")


def _await_upstreams(folder: Path, app: str, instances: int, limit: float) -> None:
    """Waits until exactly so many of `app` run.

    Raises ChangeTimedOut, or LozengeError if the platform or an instance fails.
    """
    from lozenge_deploy.control.client import ChangeTimedOut
    from lozenge_deploy.local.upstream_replicas import app_of_program, instance_names
    from lozenge_deploy.supervision.restart_policy import ProgramState

    wanted = dict.fromkeys(instance_names(app, instances), ProgramState.RUNNING)

    def run() -> bool:
        if (state := running(folder)) is None:
            raise LozengeError(f"scaling {app}: the platform has ended", hint=f"see {folder / _LOG}")
        found = {name: each for name, each in state["programs"].items() if app_of_program(name) == app}
        if failed := [name for name, each in found.items() if each == ProgramState.FAILED]:
            name = failed[0]
            raise LozengeError(f"scaling {app}: {name} failed: {state['failed'][name]}", hint="see its log")
        return found == wanted

    if wait_until(run, limit, poll=_POLL_SECONDS):
        return
    raise ChangeTimedOut(
        f"scaling {app}: not done after {limit:.0f} s", hint="it continues; `lozenge status` shows its progress"
    )

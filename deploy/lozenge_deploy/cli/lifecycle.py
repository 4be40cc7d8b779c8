"""Commands for a deployed detector: pause, resume, restart, retire, scale, history."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lozenge.apps import is_file_source, is_sink, is_table, is_upstream, source_of
from lozenge.errors import UsageError
from lozenge_deploy.cli.local import FOLDER, scale_upstream
from lozenge_deploy.cli.options import DRY_RUN, NAME, OUTPUT, app_of, seconds_of
from lozenge_deploy.cli.printing.output import OutputFormat, show
from lozenge_deploy.cli.sink.requests import change_state, scale_app, show_history
from lozenge_deploy.cli.wait import MESSAGE, TIMEOUT, WAIT, await_change, show_changes
from lozenge_deploy.local.running_platform import DEFAULT

if TYPE_CHECKING:
    from lozenge_deploy.control.records import DeploymentSpec

Fields = dict[str, Any]


def history(name: NAME = ".", output: OUTPUT = OutputFormat.TABLE) -> None:
    """Show every change and incident of a detector: what, when, by whom, with which result.

    Of a sink or a table it lists the releases.
    """
    if is_sink(name) or is_table(name):
        show_history(name, output)
        return
    _refuse_file_source(name, "history")
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.control.client import Control

    with Control(KafkaSettings.load()) as control:
        rows = [event.model_dump(mode="json") for event in control.history(app_of(name))]
    if not rows:
        raise UsageError(f"looking for {name}: it has no history", hint=f"`lozenge deploy {name}`")
    for row in rows:
        row["at"] = str(row["at"])[:19].replace("T", " ")
    show(rows, output, brief=("at", "what", "release", "generation", "by", "detail"))


def _refuse_file_source(name: str, verb: str, options: str = "") -> None:
    """Raises UsageError for a file source, with the command of `lozenge source` that does it."""
    if not is_file_source(name):
        return
    source = source_of(name)
    command = " ".join(filter(None, ("lozenge source", verb, source, options)))
    raise UsageError(
        f"cannot {verb} {name} here: it is a file source, and no detector",
        hint=f"`lozenge source pause {source}`, then `lozenge source resume {source}` starts it again"
        if verb == "restart"
        else f"`{command}` does it",
    )


def _goal(goal: str) -> Callable[["DeploymentSpec"], Fields]:
    return lambda present: {"goal": goal} if present.goal != goal else {}


def _paused(present: "DeploymentSpec") -> Fields:
    if present.goal == "retired":
        raise UsageError(f"pausing {present.detector}: it is retired", hint=f"`lozenge resume {present.detector}`")
    return _goal("paused")(present)


def _restarted(present: "DeploymentSpec") -> Fields:
    return {"goal": "running", "restart": present.restart + 1}


def _change(
    name: str,
    verb: str,
    fields_of: Callable[["DeploymentSpec"], Fields],
    message: str,
    dry_run: bool,
    timeout: str | None,
    output: OutputFormat,
) -> None:
    """Applies the present spec with the fields that `fields_of` gives; changes nothing if it gives none."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.control.client import Control
    from lozenge_deploy.operations.release_diff import readers_row
    from lozenge_deploy.releases.alert_readers import readers_of

    kafka, limit = KafkaSettings.load(), seconds_of(timeout, "--timeout") if timeout is not None else None
    with Control(kafka) as control:
        present = control.deployed(app_of(name))
        fields, current = fields_of(present), present.model_dump(mode="json")
        rows = [{"field": field, "current": current[field], "new": new} for field, new in fields.items()]
        if rows:
            rows.append({"field": "offsets", "current": None, "new": "kept; no event is skipped or processed twice"})
            if fields.get("goal") in ("paused", "retired"):
                names = [reader.detector for reader in readers_of(kafka, present.detector)]
                rows += readers_row(names, "get no more alerts of it")
        else:
            goal = current["goal"]
            rows = [{"field": "goal", "current": goal, "new": f"no change (already {goal})"}]
        show_changes(present.detector, rows, dry_run or not fields, output)
        if fields and not dry_run:
            wanted = control.change(present, verb, message, before=control.unproved(present), **fields)
            await_change(control, wanted, limit, output, changes=rows)


def _verb(
    what: str, help_: str, fields_of: Callable[["DeploymentSpec"], Fields], default_timeout: str
) -> Callable[..., None]:
    """The command `what`: it applies the deployed spec with the fields that `fields_of` gives."""

    def run(
        name: NAME = ".",
        message: MESSAGE = "",
        dry_run: DRY_RUN = False,
        wait: WAIT = True,
        timeout: TIMEOUT = default_timeout,
        folder: FOLDER = DEFAULT,
        output: OUTPUT = OutputFormat.TABLE,
    ) -> None:
        if is_sink(name) or is_table(name):  # its processes follow the request, and the agent knows nothing of it
            change_state(folder, name, what, seconds_of(timeout, "--timeout") if wait else None, dry_run, output)
            return
        _refuse_file_source(name, what)
        _change(name, what, fields_of, message, dry_run, timeout if wait else None, output)

    run.__name__, run.__doc__ = what, help_
    return run


def scale(
    name: NAME = ".",
    *,
    instances: Annotated[int, typer.Option(min=1, help="How many instances share its partitions.")],
    message: MESSAGE = "",
    dry_run: DRY_RUN = False,
    wait: WAIT = True,
    timeout: TIMEOUT = "5m",
    folder: FOLDER = DEFAULT,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Change how many instances share the partitions of a detector or a normaliser; they change at exact offsets."""
    if is_upstream(name):  # the platform in `folder` runs it, not the agent
        scale_upstream(folder, name, instances, seconds_of(timeout, "--timeout") if wait else None, dry_run, output)
        return
    if is_sink(name) or is_table(name):
        scale_app(name, instances, dry_run, output)
        return
    _refuse_file_source(name, "scale", f"--instances {instances}")
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.control.client import Control
    from lozenge_deploy.operations.scaling import refused
    from lozenge_deploy.releases.release_store import Releases

    kafka, limit = KafkaSettings.load(), seconds_of(timeout, "--timeout") if wait else None
    with Control(kafka) as control:
        present = control.deployed(app_of(name))
        release = Releases(kafka).get(present.detector, present.release)
        if refusal := refused(release, instances, kafka.partitions, control.pending(present)):
            raise refusal
        new = instances if instances != present.instances else f"no change (already {instances})"
        rows = [{"field": "instances", "current": present.instances, "new": new}]
        show_changes(present.detector, rows, dry_run or instances == present.instances, output)
        if instances != present.instances and not dry_run:
            why = message or f"{present.instances} to {instances} instances"
            wanted = control.change(present, "scale", why, instances=instances)
            await_change(control, wanted, limit, output, changes=rows)


pause = _verb("pause", "Stop a detector at a batch boundary; `resume` starts it there again.", _paused, "2m")
resume = _verb("resume", "Start a paused or retired detector at its committed offsets.", _goal("running"), "5m")
restart = _verb(
    "restart", "Replace the running process by a new one of the same release, without a gap.", _restarted, "5m"
)
retire = _verb(
    "retire",
    "Stop a detector for good. Its topics, offsets and releases stay, so `resume` can undo that.",
    _goal("retired"),
    "2m",
)

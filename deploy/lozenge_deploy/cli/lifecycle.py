"""The verbs for what is deployed: pause, resume, restart, retire, scale; and history."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lozenge.errors import UsageError
from lozenge_deploy.cli.local import DEFAULT, FOLDER, scale_upstream
from lozenge_deploy.cli.options import DRY_RUN, NAME, OUTPUT, Format, app_of, seconds_of, show
from lozenge_deploy.cli.wait import MESSAGE, TIMEOUT, WAIT, await_change, show_changes

if TYPE_CHECKING:
    from lozenge_deploy.control.records import DeploymentSpec

Fields = dict[str, Any]


def history(name: NAME = ".", output: OUTPUT = Format.TABLE) -> None:
    """Show all that ever happened to a detector: who did what, when, and what came of it."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.control.client import Control

    with Control(KafkaSettings.load()) as control:
        rows = [happening.model_dump(mode="json") for happening in control.history(app_of(name))]
    if not rows:
        raise UsageError(f"looking for {name}: nothing has happened to it", hint=f"`lozenge deploy {name}`")
    for row in rows:
        row["at"] = str(row["at"])[:19].replace("T", " ")
    show(rows, output, brief=("at", "what", "release", "generation", "by", "detail"))


def _goal(goal: str) -> Callable[["DeploymentSpec"], Fields]:
    return lambda present: {"goal": goal} if present.goal != goal else {}


def _paused(present: "DeploymentSpec") -> Fields:
    if present.goal == "retired":
        raise UsageError(f"pausing {present.detector}: it is retired", hint=f"`lozenge resume {present.detector}`")
    return _goal("paused")(present)


def _again(present: "DeploymentSpec") -> Fields:
    return {"goal": "running", "restart": present.restart + 1}


def _change(
    name: str,
    verb: str,
    fields_of: Callable[["DeploymentSpec"], Fields],
    message: str,
    dry_run: bool,
    timeout: str | None,
    output: Format,
) -> None:
    """Wishes the present with the fields that `fields_of` gives for it; nothing where it gives none."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.control.client import Control

    limit = seconds_of(timeout, "--timeout") if timeout is not None else None
    with Control(KafkaSettings.load()) as control:
        present = control.deployed(app_of(name))
        fields, now = fields_of(present), present.model_dump(mode="json")
        rows = [{"what": field, "now": now[field], "then": then} for field, then in fields.items()]
        if rows:
            rows.append({"what": "offsets", "now": None, "then": "stay; nothing is judged twice or left out"})
        else:
            rows = [{"what": "goal", "now": now["goal"], "then": f"{now['goal']}: it is so already"}]
        show_changes(present.detector, rows, dry_run or not fields, output)
        if fields and not dry_run:
            wanted = control.change(present, verb, message, before=control.unproved(present), **fields)
            await_change(control, wanted, limit, output, changes=rows)


def _verb(what: str, help_: str, fields_of: Callable[["DeploymentSpec"], Fields], patience: str) -> Callable[..., None]:
    """The command `what`: it wishes what is deployed with the fields that `fields_of` gives, for it."""

    def run(
        name: NAME = ".",
        message: MESSAGE = "",
        dry_run: DRY_RUN = False,
        wait: WAIT = True,
        timeout: TIMEOUT = patience,
        output: OUTPUT = Format.TABLE,
    ) -> None:
        _change(name, what, fields_of, message, dry_run, timeout if wait else None, output)

    run.__name__, run.__doc__ = what, help_
    return run


def scale(
    name: NAME = ".",
    *,
    instances: Annotated[int, typer.Option(min=1, help="How many share its partitions.")],
    message: MESSAGE = "",
    dry_run: DRY_RUN = False,
    wait: WAIT = True,
    timeout: TIMEOUT = "5m",
    folder: FOLDER = DEFAULT,
    output: OUTPUT = Format.TABLE,
) -> None:
    """Let several instances share the partitions of a detector or of upstream, handed over at exact offsets."""
    if name == "upstream":  # it belongs to the platform in `folder`, not to the agent
        scale_upstream(folder, instances, seconds_of(timeout, "--timeout") if wait else None, dry_run, output)
        return
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.control.client import Control
    from lozenge_deploy.operations.scaling import refused
    from lozenge_deploy.releases.release_store import Releases

    kafka, limit = KafkaSettings.load(), seconds_of(timeout, "--timeout") if wait else None
    with Control(kafka) as control:
        present = control.deployed(app_of(name))
        release = Releases(kafka).get(present.detector, present.release)
        if refusal := refused(release, instances, control.pending(present)):
            raise refusal
        then = instances if instances != present.instances else f"{instances}: it is so already"
        rows = [{"what": "instances", "now": present.instances, "then": then}]
        show_changes(present.detector, rows, dry_run or instances == present.instances, output)
        if instances != present.instances and not dry_run:
            said = message or f"{present.instances} to {instances} instances"
            wanted = control.change(present, "scale", said, instances=instances)
            await_change(control, wanted, limit, output, changes=rows)


pause = _verb("pause", "End the detector's process at a batch boundary; `resume` goes on there.", _paused, "2m")
resume = _verb("resume", "Start a paused or retired detector where it ended.", _goal("running"), "5m")
restart = _verb(
    "restart", "Put a new process of the same release in the place of the running one, without a gap.", _again, "5m"
)
retire = _verb(
    "retire",
    "End the detector for good. Its topics, offsets and releases stay, so `resume` can take that back.",
    _goal("retired"),
    "2m",
)

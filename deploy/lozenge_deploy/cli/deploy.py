"""Commands that change the release or the settings of a detector: plan, deploy, rollback, set."""

import os
from typing import Annotated, Any

import typer

from lozenge.contracts.isolation import Isolation
from lozenge.errors import UsageError
from lozenge.process.user_name import user_name
from lozenge_deploy.cli.options import (
    DRY_RUN,
    EXAMPLES,
    LAST,
    NAME,
    OUTPUT,
    SET,
    app_of,
    folder_of,
    seconds_of,
    settings_of,
)
from lozenge_deploy.cli.printing.output import OutputFormat, show, show_backtest, show_cost, show_warnings
from lozenge_deploy.cli.wait import MESSAGE, TIMEOUT, WAIT, await_change, show_changes

NICE = 5
"""Building and testing use processors and must not slow down what runs, but must end on a busy machine too."""
STATE = Annotated[str | None, typer.Option(help="State policy: keep, rebuild or fresh; by default as declared.")]
TEST_LIMIT = Annotated[str, typer.Option(help="The time that its tests may take, unless they have passed before.")]
WATCH = Annotated[str, typer.Option(help='Watch window, such as "5m": it is rolled back if unhealthy meanwhile.')]


def plan(
    name: NAME = ".",
    last: LAST = "10m",
    state: STATE = None,
    set_: SET = None,
    examples: EXAMPLES = 5,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Show what a deploy would change, emit and cost, compared with the live release; change nothing."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.control.client import Control
    from lozenge_deploy.operations.deploy_plan import prepare
    from lozenge_deploy.operations.impact import estimate_impact
    from lozenge_deploy.releases.lint.folder import require_sound

    folder, kafka, settings = folder_of(name), KafkaSettings.load(), settings_of(set_)
    seconds_of(last, "--last")
    show_warnings(require_sound(folder).warnings)
    os.nice(NICE)
    with Control(kafka) as control:
        candidate = prepare(folder, kafka, control, state=state, settings=settings)
    changes = candidate.changes()
    if output is not OutputFormat.JSON:
        show(changes, output)
    found = estimate_impact(candidate, last)
    if output is OutputFormat.JSON:
        refusal = str(candidate.refusal) if candidate.refusal else None
        answer = {"changes": changes, "refusal": refusal, "backtest": found.candidate, "cost": found.cost}
        show([{"detector": folder.name, **answer}], output)
    else:
        show_backtest(found.candidate, examples, output)
        show_cost(found.cost, candidate.current_release.name if candidate.current_release else None)
    if candidate.refusal is not None:
        raise candidate.refusal


def deploy(
    name: NAME = ".",
    state: STATE = None,
    set_: SET = None,
    watch: WATCH = "5m",
    test_limit: TEST_LIMIT = "10m",
    message: MESSAGE = "",
    dry_run: DRY_RUN = False,
    wait: WAIT = True,
    timeout: TIMEOUT = "10m",
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Release a detector's folder and replace the running release at an exact offset."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.control.client import Control
    from lozenge_deploy.operations.deploy_plan import prepare
    from lozenge_deploy.releases.lint.folder import require_sound

    folder, kafka, settings = folder_of(name), KafkaSettings.load(), settings_of(set_)
    watched, limit = seconds_of(watch, "--watch"), seconds_of(timeout, "--timeout") if wait else None
    tested = seconds_of(test_limit, "--test-limit")
    show_warnings(require_sound(folder).warnings)
    os.nice(NICE)
    with Control(kafka) as control:
        candidate = prepare(folder, kafka, control, state=state, settings=settings, test_limit=tested)
        changes = candidate.changes()
        show_changes(folder.name, changes, dry_run and candidate.refusal is None, output)
        if candidate.refusal is not None:
            raise candidate.refusal
        if not dry_run:
            wanted = candidate.commit(watch=watched, message=message, by=user_name())
            wanted = control.apply(wanted, after=candidate.current)
            await_change(control, wanted, limit, output, changes=changes)


def rollback(
    name: NAME = ".",
    to: Annotated[str | None, typer.Option(help="A release such as r7; by default the previous one.")] = None,
    state: STATE = None,
    message: MESSAGE = "",
    dry_run: DRY_RUN = False,
    wait: WAIT = True,
    timeout: TIMEOUT = "10m",
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Replace the present release by an earlier one at an exact offset."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.control.client import Control
    from lozenge_deploy.operations.change_plan import plan_rollback
    from lozenge_deploy.operations.input_check import deployed_by

    kafka, limit = KafkaSettings.load(), seconds_of(timeout, "--timeout") if wait else None
    with Control(kafka) as control:
        present = control.deployed(app_of(name))
        history = control.history(present.detector)
        deployed = deployed_by(kafka, control.spec)
        wanted, changes = plan_rollback(kafka, present, history, deployed, to=to, state=state, message=message)
        show_changes(present.detector, changes, dry_run, output)
        if not dry_run:
            await_change(control, control.apply(wanted, after=present), limit, output, changes=changes)


def set_(
    name: NAME,
    values: Annotated[list[str] | None, typer.Argument(help="limit=250; `limit=` restores the default.")] = None,
    max_batch: Annotated[
        int | None, typer.Option(min=1, help="At most so many events per batch; not in Real-Time Mode.")
    ] = None,
    trigger: Annotated[
        str | None,
        typer.Option(help='Time between batches, such as "500ms"; in Real-Time Mode between commits, at least 5 s.'),
    ] = None,
    rate: Annotated[int | None, typer.Option(min=1, help="Events per second at most; not in Real-Time Mode.")] = None,
    cores: Annotated[int | None, typer.Option(min=1, help="Task slots; the process is replaced.")] = None,
    memory_mb: Annotated[int | None, typer.Option(min=450, help="The JVM's heap; the process is replaced.")] = None,
    isolation: Annotated[
        Isolation | None, typer.Option(help="A JVM of its own, or one shared with others; the process is replaced.")
    ] = None,
    message: MESSAGE = "",
    dry_run: DRY_RUN = False,
    wait: WAIT = True,
    timeout: TIMEOUT = "10m",
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Change settings or resources of a detector without a new release."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.control.client import Control
    from lozenge_deploy.operations.change_plan import plan_settings

    settings = settings_of(values, unset=True)
    if trigger is not None and seconds_of(trigger, "--trigger") == 0:
        raise UsageError(f"reading --trigger: {trigger} is zero", hint='write it as --trigger "500ms"')
    all_given = {"max_batch": max_batch, "trigger": trigger, "cores": cores, "memory_mb": memory_mb}
    all_given |= {"isolation": isolation}
    given: dict[str, Any] = {option: value for option, value in all_given.items() if value is not None}
    if not settings and not given and rate is None:
        raise UsageError(f"setting {name}: nothing to set", hint=f"`lozenge set {name} limit=250`")
    kafka, limit = KafkaSettings.load(), seconds_of(timeout, "--timeout") if wait else None
    summary = " ".join([*(values or ()), *(f"{o}={v}" for o, v in given.items()), *([f"rate={rate}"] if rate else [])])
    with Control(kafka) as control:
        present = control.deployed(app_of(name))
        fields, changes = plan_settings(kafka, present, settings, given, rate)
        if not changes:
            changes = [{"field": "settings", "current": None, "new": "no change"}]
            dry_run = True
        show_changes(present.detector, changes, dry_run, output)
        if not dry_run:
            wanted = control.change(present, "set", message or summary, **fields)
            await_change(control, wanted, limit, output, changes=changes)

"""The verbs of whoever writes detectors: new, check, test."""

import getpass
import subprocess
import sys
from enum import StrEnum
from typing import Annotated

import typer

from lozenge.errors import ConfigError, UsageError
from lozenge_deploy.cli.options import NAME, OUTPUT, Format, detectors_folder, folder_of, show


class Kind(StrEnum):
    """What `new` can write."""

    RULE = "rule"
    AGGREGATE = "aggregate"
    STATEFUL = "stateful"


def new(
    name: Annotated[str, typer.Argument(help="Lower-case letters, digits and underscores.")],
    kind: Annotated[Kind, typer.Option(help="One event at a time, counts in windows, or memory per key.")] = Kind.RULE,
    owner: Annotated[str, typer.Option(help="Who answers for it; you, unless you say otherwise.")] = "",
) -> None:
    """Write the folder of a new detector, with tests that pass."""
    from lozenge_deploy.cli.scaffold import write

    detectors = detectors_folder()
    for file in write(detectors, name, kind, owner or getpass.getuser()):
        typer.echo(f"wrote {file.relative_to(detectors.parent)}")
    typer.echo(f"next: edit {name}.py, then `lozenge test {name}`", err=True)


def check(name: NAME = ".", output: OUTPUT = Format.TABLE) -> None:
    """Tell everything that is wrong with a detector's folder, without running it."""
    from lozenge_deploy.conventions import problems

    folder = folder_of(name)
    found = problems(folder)
    if output is Format.JSON:
        show([{"detector": folder.name, "problem": problem} for problem in found], output)
    if found:
        raise ConfigError(f"checking {folder.name}: {len(found)} problem(s)", problems=found)
    if output is not Format.JSON:
        typer.echo(f"{folder.name}: nothing is wrong; next: `lozenge test {folder.name}`")


def run_tests(
    name: NAME = ".", arguments: Annotated[list[str] | None, typer.Argument(help="More for pytest, after --.")] = None
) -> None:
    """Run a detector's own tests on the code that runs it live."""
    folder = folder_of(name)
    if not (folder / f"test_{folder.name}.py").is_file():
        raise UsageError(f"testing {folder.name}: it has no test_{folder.name}.py", hint=f"`lozenge check {name}`")
    command = [sys.executable, "-m", "pytest", "-q", "--import-mode=importlib", "-p", "no:cacheprovider", "."]
    if subprocess.run([*command, *(arguments or [])], cwd=folder).returncode:
        typer.echo(f"lozenge: testing {folder.name}: its tests fail", err=True)
        raise typer.Exit(1)


def try_(
    name: NAME = ".",
    last: Annotated[str, typer.Option(help='How far back, such as "1h".')] = "1h",
    set_: Annotated[list[str] | None, typer.Option("--set", help="A setting for this trial: limit=250.")] = None,
    examples: Annotated[int, typer.Option(min=0, help="How many alerts to show of each sort.")] = 5,
    output: OUTPUT = Format.TABLE,
) -> None:
    """Tell what the detector would have raised over the retained topic, beside the live release."""
    import json
    import os

    from lozenge_deploy.environments import environment_of, in_environment

    folder = folder_of(name)
    python = environment_of(folder)
    settings = {"LOZENGE_JOB_SETTINGS": json.dumps(dict(map(_setting, set_ or ())))}
    command = [str(python), "-m", "lozenge.job.trial", "--last", last]
    run = subprocess.run(command, env=in_environment(os.environ | settings), stdout=subprocess.PIPE, text=True)
    if run.returncode:
        raise typer.Exit(run.returncode)  # it has said why
    outcome = json.loads(run.stdout)
    if output is Format.JSON:
        show([outcome], output)
        return
    live = f"against {outcome['release']}" if outcome["release"] else "and no live release has told anything"
    new, lost, dead = outcome["new"], outcome["lost"], outcome["dead_letters"]
    letters = f", {len(dead)} events could not be judged" if dead else ""
    typer.echo(
        f"{outcome['alerts']} alerts of {outcome['events']} events since {outcome['since']}: "
        f"{len(new)} new, {len(lost)} lost {live}{letters}"
    )
    rows = [{"": sort, **told} for sort, tolds in (("new", new), ("lost", lost)) for told in tolds[:examples]]
    if rows:
        show(rows, output, brief=("", "event_time", "entity", "reason"))
    for error in dead[:examples]:
        typer.echo(f"not judged: {error}")


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"reading --set {text}: write it as name=value")
    return name, value


def dev(
    name: NAME = ".",
    last: Annotated[str, typer.Option(help='Begin so far back, such as "10m".')] = "0s",
) -> None:
    """Run the detector beside the live one, starting it again whenever its folder changes; print its alerts."""
    from lozenge.durations import duration
    from lozenge.kafka import KafkaSettings
    from lozenge_deploy.cli.dev import develop

    try:
        back = duration(last)
    except ValueError as error:
        raise UsageError(f"reading --last: {error}") from error
    develop(folder_of(name), KafkaSettings.load(), back)

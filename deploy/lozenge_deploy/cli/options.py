"""The options that commands have in common, and which detector is meant."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from lozenge.errors import UsageError
from lozenge_deploy.cli.printing.output import OutputFormat


def _names(incomplete: str) -> list[str]:
    """The detectors of this checkout, for the shell to complete."""
    try:
        folders = {file.parent.name for file in detectors_folder().glob("*/pyproject.toml")}
    except UsageError:
        return []
    return sorted(name for name in folders if name.startswith(incomplete))


NAME = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A detector; `.` is the current folder.", autocompletion=_names),
]
ALERT = Annotated[str, typer.Argument(metavar="ALERT_ID", help="An alert.")]
DEBUG = Annotated[bool, typer.Option("--debug", help="Show the stack trace of an error.")]
LAST = Annotated[str, typer.Option(help='How far back, such as "1h".')]
EXAMPLES = Annotated[int, typer.Option(min=0, help="How many alerts of each kind to show.")]
SET = Annotated[list[str] | None, typer.Option("--set", help="A setting: limit=250. Once per setting.")]
DRY_RUN = Annotated[bool, typer.Option("--dry-run", help="Show what would change; change nothing.")]
CARD_NUMBERS = Annotated[
    bool,
    typer.Option("--card-numbers", help="Show card numbers unmasked; the audit log records who did."),
]
OUTPUT = Annotated[OutputFormat, typer.Option("-o", "--output", help="How to print.")]


def detectors_folder() -> Path:
    """The folder `detectors` of the checkout around the current folder; raises UsageError outside of one."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "detectors").is_dir() and (folder / "pyproject.toml").is_file():
            return folder / "detectors"
        if folder.name == "detectors" and any(folder.glob("*/pyproject.toml")):
            return folder
    raise UsageError(
        f"looking for detectors: {here} is in no checkout with a folder detectors/",
        hint="change into a checkout: a folder with pyproject.toml and detectors/. Commands on a detector that exists "
        "also take the path of its folder",
    )


def folder_of(name: str) -> Path:
    """The folder of the detector `name`, which is a name, `.` or a path; raises UsageError if there is none."""
    from lozenge.detector.package import is_detector

    folder = Path(name).resolve() if name == "." or "/" in name else detectors_folder() / name
    if (folder / "detectors").is_dir() and not is_detector(folder):
        raise UsageError(f"looking for a detector: {folder} is a checkout of several", hint="name one, or a folder")
    if not (folder / "pyproject.toml").is_file():
        raise UsageError(f"looking for detector {name}: {folder} has no pyproject.toml", hint=_instead_of(folder.name))
    return folder


def _instead_of(name: str) -> str:
    """What to do about a detector that has no folder."""
    from lozenge.apps import is_stage
    from lozenge_deploy.releases.lint.names import name_problem

    if is_stage(name):
        return f"{name} is a stage of the platform: `lozenge status {name}` shows it"
    new = "" if name_problem(name) else f"`lozenge new {name}` creates one; "
    return f"{new}`lozenge status` lists what runs"


def app_of(name: str) -> str:
    """The name of the app: of `.` and of paths the folder's name, which need not exist."""
    return Path(name).resolve().name if name == "." or "/" in name else name


def settings_of(texts: Sequence[str] | None, *, unset: bool = False) -> dict[str, Any]:
    """Names and values of "name=value" texts, JSON values decoded; with `unset`, "name=" is None. Raises UsageError."""
    settings: dict[str, Any] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not name or not equals or not (value or unset):
            raise UsageError(f"reading the setting {text}", hint="write it as name=value")
        try:
            settings[name] = json.loads(value) if value else None
        except json.JSONDecodeError:
            settings[name] = value
    return settings


def seconds_of(text: str, option: str) -> float:
    """The value of `option` in seconds; raises UsageError."""
    from lozenge.durations import LONGEST, duration

    try:
        seconds = duration(text).total_seconds()
    except ValueError as error:
        raise UsageError(f"reading {option}: {error}", hint=f'write it as {option} "10m"') from error
    if seconds < 0:
        raise UsageError(f"reading {option}: {text} is negative", hint=f'write it as {option} "10m"')
    if seconds > LONGEST.total_seconds():
        hint = f"the longest is {LONGEST.days}d"
        raise UsageError(f"reading {option}: {text} is longer than anything is kept", hint=hint)
    return seconds

"""The verbs for notifications: where they go, what keeps them, how they fared, and what people say of them."""

import getpass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlencode

import typer

from lozenge.errors import UsageError
from lozenge_deploy.cli.options import ALERT, DRY_RUN, OUTPUT, seconds_of
from lozenge_deploy.cli.output import Format, moment, say, show, show_readable

routes = typer.Typer(help="The routing file: where alerts go.", no_args_is_help=True)
cases = typer.Typer(help="What alerts were gathered into.", no_args_is_help=True)
silence = typer.Typer(help="What nobody wants to be told for a while.", no_args_is_help=True)
channels = typer.Typer(help="The ways out: what waits, and which are off.", no_args_is_help=True)
noise = typer.Typer(help="What detectors raised beyond what they may.", no_args_is_help=True)
notifications = typer.Typer(help="Notifications once more.", no_args_is_help=True)

FILE = Annotated[Path, typer.Option("--file", envvar="LOZENGE_DOWNSTREAM_ROUTING", help="The routing file.")]
ROUTING = Path("routing.toml")
AUTHOR = Annotated[str | None, typer.Option(help="Who says so; else you.")]
CASE_TIMES = ("opened_at", "told_at", "due_at", "over_at")
CASE_BRIEF = (
    "case_id",
    "route",
    "group",
    "severity",
    "score",
    "told",
    "waiting",
    "opened_at",
    "told_at",
    "due_at",
    "muted",
)
CHANNEL = Annotated[str, typer.Argument(metavar="CHANNEL", help="Its name in the routing file.")]


def _author(given: str | None) -> str:
    return given or getpass.getuser()


@routes.command("test")
def routes_test(
    file: FILE = ROUTING,
    secrets: Annotated[bool, typer.Option("--secrets", help="Want every secret where the file says it is.")] = False,
    output: OUTPUT = Format.TABLE,
) -> None:
    """Read the routing file and run the examples that stand in it; exit code 1 if one is not as it says."""
    from lozenge_deploy.operations.notifier_client import routing

    code, said = routing("test", *(["--secrets"] if secrets else []), file)
    count, failed = said["examples"], said["failed"]
    if output is Format.JSON:
        show([said], output)
    elif failed:
        show(failed, output)
    else:
        typer.echo(f"{file} is valid, and its {count} examples are as they say" if count else f"{file} is valid")
    raise typer.Exit(code)


@routes.command("show")
def routes_show(
    alert: Annotated[Path, typer.Argument(metavar="ALERT.json", help="Its labels, or an alert of `lozenge peek`.")],
    file: FILE = ROUTING,
    output: OUTPUT = Format.TABLE,
) -> None:
    """Show which routes take an alert, to which channels, and in what case."""
    from lozenge_deploy.operations.notifier_client import routing

    _, rows = routing("show", file, alert)
    show(rows, output, brief=("route", "channels", "case", "group_wait", "group_interval"))


@cases.command("ls")
def cases_ls(
    matchers: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MATCHER]...", help='Such as detector=large_amount, "severity>=high".'),
    ] = None,
    count: Annotated[int, typer.Option("-n", min=1, max=10_000, help="How many of the newest.")] = 100,
    output: OUTPUT = Format.TABLE,
) -> None:
    """Show the open cases with an alert that matches all MATCHERs: what was told, what waits, and why."""
    from lozenge_deploy.operations.notifier_client import ask

    asked = [*(("match", text) for text in matchers or ()), ("limit", str(count))]
    rows = ask("GET", f"/cases?{urlencode(asked)}")
    show_readable(rows, output, "no such case is open", times=CASE_TIMES, brief=CASE_BRIEF)
    if len(rows) == count:
        typer.echo(f"these are the newest {count}; there may be more: -n", err=True)


@cases.command("show")
def cases_show(
    id: Annotated[str, typer.Argument(metavar="ID", help="As `lozenge cases ls` shows it.")],
    output: OUTPUT = Format.TABLE,
) -> None:
    """Show one case, and each of its latest 1,000 alerts: which notification told it, or why none did."""
    from lozenge_deploy.operations.notifier_client import ask, in_path

    found = ask("GET", f"/cases/{in_path(id)}")
    if output is Format.JSON:
        show([found], output)
        return
    alerts = found.pop("alerts")
    show_readable([found], output, "", times=CASE_TIMES, brief=CASE_BRIEF)
    typer.echo()
    show_readable(alerts, output, "it has no alert", times=("received_at",))


@silence.command("add")
def silence_add(
    matchers: Annotated[list[str], typer.Argument(metavar="MATCHER...", help="Such as detector=large_amount.")],
    reason: Annotated[str, typer.Option(help="Why.")],
    for_: Annotated[str, typer.Option("--for", help='How long, such as "2h".')] = "1h",
    author: AUTHOR = None,
    dry_run: DRY_RUN = False,
    output: OUTPUT = Format.TABLE,
) -> None:
    """Tell nobody of alerts that match all MATCHERs, for a while; what is not over by then is told then."""
    from lozenge_deploy.operations.notifier_client import ask

    seconds = seconds_of(for_, "--for")
    asked = {"matchers": matchers, "author": _author(author), "reason": reason, "seconds": seconds}
    made = ask("POST", "/silences", asked, dry_run=dry_run)
    said = "it would hold" if dry_run else f"silence {made['id']} holds"
    say(f"{said} until {moment(made['ends_at'])}", made, output)
    for detector in made["unknown_detectors"]:
        typer.echo(f"no alert of {detector} has come in a long time: is that its name?", err=True)


@silence.command("ls")
def silence_ls(output: OUTPUT = Format.TABLE) -> None:
    """Show the silences: who wanted them, why, and until when."""
    from lozenge_deploy.operations.notifier_client import ask

    show_readable(ask("GET", "/silences"), output, "no silence holds", times=("starts_at", "ends_at"))


@silence.command("end")
def silence_end(
    id: Annotated[str, typer.Argument(metavar="ID", help="As `lozenge silence ls` shows it.")],
    dry_run: DRY_RUN = False,
    output: OUTPUT = Format.TABLE,
) -> None:
    """End a silence now."""
    from lozenge_deploy.operations.notifier_client import ask, in_path

    told = ask("DELETE", f"/silences/{in_path(id)}", dry_run=dry_run)
    say(f"silence {id} {'would be' if dry_run else 'is'} over", told, output)


@channels.command("ls")
def channels_ls(output: OUTPUT = Format.TABLE) -> None:
    """Show what waits for each channel, what was sent, what was given up, and why one is off."""
    from lozenge_deploy.operations.notifier_client import ask

    show_readable(ask("GET", "/channels"), output, "there is no channel")


@channels.command("enable")
def channels_enable(channel: CHANNEL, dry_run: DRY_RUN = False, output: OUTPUT = Format.TABLE) -> None:
    """Turn a channel on again whose receiver wanted nothing more; what waits for it is sent."""
    from lozenge_deploy.operations.notifier_client import ask, in_path

    told = ask("POST", f"/channels/{in_path(channel)}/enable", {}, dry_run=dry_run)
    say(f"{channel} {'would be' if dry_run else 'is'} on", told, output)


@noise.command("ls")
def noise_ls(output: OUTPUT = Format.TABLE) -> None:
    """Show how many alerts of each detector are parked."""
    from lozenge_deploy.operations.notifier_client import ask

    show_readable(ask("GET", "/noise"), output, "nothing is parked")


@noise.command("release")
def noise_release(
    detector: str, author: AUTHOR = None, dry_run: DRY_RUN = False, output: OUTPUT = Format.TABLE
) -> None:
    """Let a detector's parked alerts through."""
    _unpark(detector, "release", author, dry_run, output)


@noise.command("drop")
def noise_drop(detector: str, author: AUTHOR = None, dry_run: DRY_RUN = False, output: OUTPUT = Format.TABLE) -> None:
    """Tell nobody of a detector's parked alerts."""
    _unpark(detector, "drop", author, dry_run, output)


@notifications.command()
def replay(
    to: Annotated[str, typer.Option(help="The channel that gets them once more.")],
    from_: Annotated[int, typer.Option("--from", min=0, help="The number (seq) of the first.")],
    partition: Annotated[int | None, typer.Option(min=0, help="One partition of the topic; else all.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Also those that were never meant for that channel.")] = False,
    dry_run: DRY_RUN = False,
    output: OUTPUT = Format.TABLE,
) -> None:
    """Send the notifications of a channel once more, under the ids that they had."""
    from lozenge_deploy.operations.notifier_client import ask

    asked = {"channel": to, "from": from_, "partition": partition, "all": all_}
    told = ask("POST", "/replay", asked, dry_run=dry_run)
    say(f"{told['notifications']} notifications {'would go' if dry_run else 'go'} to {to} once more", told, output)


def verdict(
    alert_id: ALERT,
    verdict: Annotated[str, typer.Argument(metavar="VERDICT", help="confirmed, false-alarm or snooze.")],
    note: Annotated[str, typer.Option(help="In your own words.")] = "",
    for_: Annotated[str, typer.Option("--for", help="How long a snooze lasts.")] = "7d",
    author: AUTHOR = None,
    dry_run: DRY_RUN = False,
    output: OUTPUT = Format.TABLE,
) -> None:
    """Say what you make of an alert; `snooze` silences its detector about the same entity for a while."""
    from lozenge_deploy.operations.notifier_client import ask

    said = verdict.replace("-", "_")
    if said not in ("confirmed", "false_alarm", "snooze"):
        raise UsageError(f"{verdict!r} is no verdict", hint="say confirmed, false-alarm or snooze")
    body = {"alert_id": alert_id, "verdict": said, "author": _author(author), "note": note}
    told = ask("POST", "/verdicts", body | {"seconds": seconds_of(for_, "--for")}, dry_run=dry_run)
    silenced = f", as silence {told['silence']}" if "silence" in told and not dry_run else ""
    say(f"{'would be noted' if dry_run else 'noted'}: {verdict}{silenced}", told, output)


def _unpark(detector: str, what: str, author: str | None, dry_run: bool, output: Format) -> None:
    from lozenge_deploy.operations.notifier_client import ask, in_path

    told = ask("POST", f"/noise/{in_path(detector)}/{what}", {"author": _author(author)}, dry_run=dry_run)
    done = f"{'would be ' if dry_run else ''}{what}{'d' if what == 'release' else 'ped'}"
    say(f"{told['alerts']} alerts of {detector}: {done}", told, output)

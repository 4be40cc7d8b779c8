"""The commands for notifications: cases, silences, channels, rate limits, replay and feedback."""

import getpass
from typing import Annotated
from urllib.parse import urlencode

import typer

from lozenge.errors import UsageError
from lozenge_deploy.cli.options import ALERT, DRY_RUN, OUTPUT, seconds_of
from lozenge_deploy.cli.printing.output import OutputFormat, moment, say, show, show_readable
from lozenge_deploy.cli.printing.terminal import echo

cases = typer.Typer(help="The cases that group alerts.", no_args_is_help=True)
silence = typer.Typer(help="Silences: alerts that are muted for a time.", no_args_is_help=True)
channels = typer.Typer(help="The notification channels.", no_args_is_help=True)
rate_limits = typer.Typer(help="The alerts of detectors that exceed their rate limit.", no_args_is_help=True)
notifications = typer.Typer(help="Notifications that were sent before.", no_args_is_help=True)

AUTHOR = Annotated[str | None, typer.Option(help="The author; by default the current user.")]
CASE_TIMES = ("opened_at", "notified_at", "next_evaluation_at", "resolves_at")
CASE_BRIEF = (
    "case_id",
    "route",
    "group",
    "severity",
    "score",
    "notified",
    "waiting",
    "opened_at",
    "notified_at",
    "next_evaluation_at",
    "muted",
)
CHANNEL = Annotated[str, typer.Argument(metavar="CHANNEL", help="Its name in the routing file.")]


def _author(given: str | None) -> str:
    if given:
        return given
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container may have no entry for its user
        raise UsageError("the author is unknown: this user has no name here", hint="name one with --author") from None


@cases.command("ls")
def cases_ls(
    matchers: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MATCHER]...", help='Such as detector=large_amount, "severity>=high".'),
    ] = None,
    count: Annotated[int, typer.Option("-n", min=1, max=10_000, help="How many of the newest.")] = 100,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Show the open cases with an alert that matches all MATCHERs: notified and waiting alerts, and why they wait."""
    from lozenge_deploy.operations.notifier_client import ask

    asked = [*(("matcher", text) for text in matchers or ()), ("limit", str(count))]
    rows = ask("GET", f"/cases?{urlencode(asked)}")
    show_readable(rows, output, "there is no such open case", times=CASE_TIMES, brief=CASE_BRIEF)
    if len(rows) == count:
        echo(f"these are the newest {count}; there may be more: -n", err=True)


@cases.command("show")
def cases_show(
    id: Annotated[str, typer.Argument(metavar="ID", help="As `lozenge cases ls` shows it.")],
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Show one case and its latest 1,000 alerts, each with its notification or why it is muted."""
    from lozenge_deploy.operations.notifier_client import ask, in_path

    found = ask("GET", f"/cases/{in_path(id)}")
    if output is OutputFormat.JSON:
        show([found], output)
        return
    alerts = found.pop("alerts")
    show_readable([found], output, "", times=CASE_TIMES, brief=CASE_BRIEF)
    echo("")
    show_readable(alerts, output, "the case has no alert", times=("received_at",))


@silence.command("add")
def silence_add(
    matchers: Annotated[list[str], typer.Argument(metavar="MATCHER...", help="Such as detector=large_amount.")],
    reason: Annotated[str, typer.Option(help="The reason.")],
    for_: Annotated[str, typer.Option("--for", help='How long, such as "2h".')] = "1h",
    author: AUTHOR = None,
    dry_run: DRY_RUN = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Mute the alerts that match all MATCHERs for a time; those that are still active then are notified then."""
    from lozenge_deploy.operations.notifier_client import ask

    seconds = seconds_of(for_, "--for")
    asked = {"matchers": matchers, "author": _author(author), "reason": reason, "seconds": seconds}
    made = ask("POST", "/silences", asked, dry_run=dry_run)
    said = "it would be active" if dry_run else f"silence {made['id']} is active"
    matching = f"{made['matching_cases']} open cases have a matching alert"
    say(f"{said} until {moment(made['ends_at'])}; {matching}", made, output)
    for other in made["same"]:
        echo(f"silence {other} has the same matchers, and is active too", err=True)
    for detector in made["unknown_detectors"]:
        echo(f"no alert of {detector} was received in a long time; check the name", err=True)
    for label in made["unknown_labels"]:
        echo(f"no known alert has the label {label}; check the name", err=True)


@silence.command("ls")
def silence_ls(output: OUTPUT = OutputFormat.TABLE) -> None:
    """Show the silences: their authors, reasons and times."""
    from lozenge_deploy.operations.notifier_client import ask

    show_readable(ask("GET", "/silences"), output, "there is no silence", times=("starts_at", "ends_at"))


@silence.command("end")
def silence_end(
    id: Annotated[str, typer.Argument(metavar="ID", help="As `lozenge silence ls` shows it.")],
    dry_run: DRY_RUN = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """End a silence now."""
    from lozenge_deploy.operations.notifier_client import ask, in_path

    answer = ask("DELETE", f"/silences/{in_path(id)}", dry_run=dry_run)
    say(f"silence {id} {'would end' if dry_run else 'has ended'}", answer, output)


@channels.command("ls")
def channels_ls(output: OUTPUT = OutputFormat.TABLE) -> None:
    """Show the deliveries of each channel by state, and why a channel is disabled."""
    from lozenge_deploy.operations.notifier_client import ask

    show_readable(ask("GET", "/channels"), output, "there is no channel")


@channels.command("enable")
def channels_enable(channel: CHANNEL, dry_run: DRY_RUN = False, output: OUTPUT = OutputFormat.TABLE) -> None:
    """Enable a channel that its receiver has disabled; its waiting deliveries are sent."""
    from lozenge_deploy.operations.notifier_client import ask, in_path

    answer = ask("POST", f"/channels/{in_path(channel)}/enable", {}, dry_run=dry_run)
    say(f"{channel} {'would be' if dry_run else 'is'} enabled", answer, output)


@channels.command("retry")
def channels_retry(channel: CHANNEL, dry_run: DRY_RUN = False, output: OUTPUT = OutputFormat.TABLE) -> None:
    """Send the failed messages of a channel again, once what refused them is fixed."""
    from lozenge_deploy.operations.notifier_client import ask, in_path

    answer = ask("POST", f"/channels/{in_path(channel)}/retry", {}, dry_run=dry_run)
    say(f"{answer['messages']} messages {'would be' if dry_run else 'are'} sent to {channel} again", answer, output)


@rate_limits.command("ls")
def rate_limits_ls(output: OUTPUT = OutputFormat.TABLE) -> None:
    """Show how many rate-limited alerts of each detector wait."""
    from lozenge_deploy.operations.notifier_client import ask

    show_readable(ask("GET", "/rate-limits"), output, "there are no rate-limited alerts")


@rate_limits.command("release")
def rate_limits_release(
    detector: str, author: AUTHOR = None, dry_run: DRY_RUN = False, output: OUTPUT = OutputFormat.TABLE
) -> None:
    """Process a detector's rate-limited alerts."""
    _decide(detector, "release", author, dry_run, output)


@rate_limits.command("drop")
def rate_limits_drop(
    detector: str, author: AUTHOR = None, dry_run: DRY_RUN = False, output: OUTPUT = OutputFormat.TABLE
) -> None:
    """Drop a detector's rate-limited alerts."""
    _decide(detector, "drop", author, dry_run, output)


@notifications.command()
def replay(
    to: Annotated[str, typer.Option(help="The channel that gets them again.")],
    from_: Annotated[int, typer.Option("--from", min=0, help="The number (seq) of the first.")],
    partition: Annotated[int | None, typer.Option(min=0, help="One partition of the topic; else all.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Also those that were never routed to that channel.")] = False,
    dry_run: DRY_RUN = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Send the notifications of a channel again, under the same ids."""
    from lozenge_deploy.operations.notifier_client import ask

    asked = {"channel": to, "from": from_, "partition": partition, "all": all_}
    answer = ask("POST", "/replay", asked, dry_run=dry_run)
    say(
        f"{answer['notifications']} notifications {'would be' if dry_run else 'are'} sent to {to} again", answer, output
    )


def feedback(
    alert_id: ALERT,
    verdict: Annotated[str, typer.Argument(metavar="VERDICT", help="confirmed, false-alarm or snooze.")],
    note: Annotated[str, typer.Option(help="A comment.")] = "",
    for_: Annotated[str, typer.Option("--for", help="How long a snooze lasts.")] = "7d",
    author: AUTHOR = None,
    dry_run: DRY_RUN = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Answer an alert; `snooze` silences its detector about the same entity for a time."""
    from lozenge_deploy.operations.notifier_client import ask

    value = verdict.replace("-", "_")
    if value not in ("confirmed", "false_alarm", "snooze"):
        raise UsageError(f"{verdict!r} is no verdict", hint="use confirmed, false-alarm or snooze")
    body = {"alert_id": alert_id, "verdict": value, "author": _author(author), "note": note}
    answer = ask("POST", "/feedback", body | {"seconds": seconds_of(for_, "--for")}, dry_run=dry_run)
    silenced = f", as silence {answer['silence']}" if "silence" in answer and not dry_run else ""
    say(f"{'would be recorded' if dry_run else 'recorded'}: {verdict}{silenced}", answer, output)


def _decide(detector: str, action: str, author: str | None, dry_run: bool, output: OutputFormat) -> None:
    from lozenge_deploy.operations.notifier_client import ask, in_path

    answer = ask("POST", f"/rate-limits/{in_path(detector)}/{action}", {"author": _author(author)}, dry_run=dry_run)
    done = f"{'would be ' if dry_run else ''}{'released' if action == 'release' else 'dropped'}"
    say(f"{answer['alerts']} alerts of {detector}: {done}", answer, output)

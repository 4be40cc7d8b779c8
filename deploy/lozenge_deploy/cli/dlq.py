"""`lozenge dlq`: the dead letters that stand, and what is to become of them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lozenge.errors import DetectorError, UsageError
from lozenge_deploy.cli.options import DRY_RUN, NAME, OUTPUT, Format, app_of, show, tell
from lozenge_deploy.cli.wait import MESSAGE

if TYPE_CHECKING:
    from lozenge.kafka.dead_letter_queue import Letter
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.protocol.dlq_resolutions import Choice

app = typer.Typer(help="Show, replay or drop dead letters: what could not be processed.", no_args_is_help=True)

PLACES = Annotated[list[str] | None, typer.Argument(metavar="[PLACE]...", help='In its topic, such as "2:9120".')]
KEY = Annotated[str | None, typer.Option(help="Those of one card, account...: whatever its records have as key.")]
ALL = Annotated[bool, typer.Option("--all", help="All that stand.")]
_BRIEF = ("place", "key", "attempt", "first_failed_at", "reason")


@app.command()
def ls(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One app, by reason; else all apps.")] = None,
    output: OUTPUT = Format.TABLE,
) -> None:
    """Show how many dead letters stand, since when, and why."""
    from lozenge.kafka.dead_letter_queue import apps_with_dead_letters
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.protocol.dlq_resolutions import standing
    from lozenge_deploy.observe.dead_letter_report import summaries

    kafka = KafkaSettings.load()
    if name is not None:
        rows = summaries(standing(kafka, app_of(name)), lambda letter: letter.reason)
    else:
        found = (letter for each in apps_with_dead_letters(kafka) for letter in standing(kafka, each))
        rows = summaries(found, lambda letter: letter.app)
    if rows or output is Format.JSON:
        show(rows, output)
    else:
        typer.echo("no dead letter stands", err=True)


@app.command("show")
def show_(
    name: NAME,
    place: Annotated[str | None, typer.Argument(metavar="[PLACE]", help='One of them, whole: "2:9120".')] = None,
    count: Annotated[int, typer.Option("-n", min=1, help="How many of the newest that stand.")] = 20,
    output: OUTPUT = Format.TABLE,
) -> None:
    """Show the dead letters of an app that stand; or one of them, decoded, with all that is known of it."""
    from lozenge.contracts.record import place_of
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.protocol.dlq_resolutions import standing
    from lozenge_deploy.observe.dead_letter_report import whole

    target = app_of(name)
    where = place_of(place) if place is not None else None
    kafka = KafkaSettings.load()
    if where is None:
        newest = sorted(standing(kafka, target), key=lambda letter: letter.at)[-count:]
        _list(target, newest, output)
        return
    found = whole(kafka, target, where)
    show(
        [found] if output is Format.JSON else [{"what": what, "value": value} for what, value in found.items()], output
    )


@app.command()
def replay(
    name: NAME,
    places: PLACES = None,
    key: KEY = None,
    all_: ALL = False,
    in_order: Annotated[
        bool, typer.Option("--in-order", help="Of one key, leave those behind one that fails again.")
    ] = False,
    message: MESSAGE = "",
    dry_run: DRY_RUN = False,
    output: OUTPUT = Format.TABLE,
) -> None:
    """Process dead letters anew, in the order of what they stand for: a detector's by the release that is wanted now.

    Those of upstream and downstream go back to the topic that they came from.
    """
    from lozenge.contracts.topics import STAGES
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.protocol.dlq_resolutions import standing
    from lozenge_deploy.operations.dlq_resend import refuse_strays

    choice, target, kafka = _choice("replaying", name, places, key, all_), app_of(name), KafkaSettings.load()
    if target not in STAGES:
        _judge(kafka, target, choice, in_order, message, dry_run, output)
        return
    if in_order:
        raise UsageError(
            f"replaying dead letters of {target}: it decides later, so nothing can wait for what fails again",
            hint="they go back in their order anyway; or name them by their places, one after the other",
        )
    chosen = choice.of(target, standing(kafka, target))
    refuse_strays(kafka, target, chosen)
    if dry_run or not chosen:
        _list(target, chosen, output)
        return
    from lozenge_deploy.operations.dlq_resend import send_back

    sent = sum(line.letters for line in send_back(kafka, target, choice, message))
    tell(f"{target}: {sent} sent back to where they came from", {"app": target, "letters": sent}, output)


def _judge(
    kafka: "KafkaSettings", target: str, choice: "Choice", in_order: bool, message: str, dry_run: bool, output: Format
) -> None:
    from lozenge.protocol.dlq_resolutions import replayable, standing
    from lozenge_deploy.control.client import Control
    from lozenge_deploy.releases import detector_process
    from lozenge_deploy.releases.release_store import Releases, environment_for

    with Control(kafka) as control:
        present = control.deployed(target)
    releases = Releases(kafka)
    release = releases.get(target, present.release)
    chosen = replayable(target, release.kind, choice.of(target, standing(kafka, target)))
    if dry_run or not chosen:
        _list(target, chosen, output)
        return
    python, steps = environment_for(release, releases), []
    for step in detector_process.replayed(
        target, python, kafka, present.release, present.settings, choice, in_order=in_order, message=message
    ):
        steps.append(step)
        typer.echo(f"{step['letters']} judged, {step['left']} to go", err=True)
    told: dict[str, Any] = {what: sum(s[what] for s in steps) for what in ("letters", "alerts", "again", "held")}
    left = steps[-1]["left"] if steps else 0
    said = f"{target} {present.release} judged {told['letters']} dead letters: {told['alerts']} alerts"
    said += f", {told['again']} failed again" if told["again"] else ""
    said += f", {told['held']} wait behind one that did" if told["held"] else ""
    tell(said, {"app": target, "release": present.release, **told, "left": left}, output)
    if left:
        raise DetectorError(
            f"replaying dead letters of {target}: {told['again']} failed again in a row; {left} more were left alone",
            hint=f"`lozenge dlq ls {target}` tells why; deploy a mend first",
        )


@app.command()
def drop(
    name: NAME,
    places: PLACES = None,
    key: KEY = None,
    all_: ALL = False,
    message: MESSAGE = "",
    dry_run: DRY_RUN = False,
    output: OUTPUT = Format.TABLE,
) -> None:
    """Write down that nothing is to be done about dead letters; they stay in their topic until that forgets them."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.protocol.dlq_resolutions import standing
    from lozenge_deploy.operations import dlq_resend

    choice, target, kafka = _choice("dropping", name, places, key, all_), app_of(name), KafkaSettings.load()
    chosen = choice.of(target, standing(kafka, target))
    if dry_run or not chosen:
        _list(target, chosen, output)
        return
    dropped = sum(line.letters for line in dlq_resend.drop(kafka, target, choice, message))
    tell(f"{target}: {dropped} dropped", {"app": target, "letters": dropped}, output)


def _choice(doing: str, name: str, places: list[str] | None, key: str | None, all_: bool) -> "Choice":
    from lozenge.contracts.record import place_of
    from lozenge.protocol.dlq_resolutions import Choice

    asked = bool(places) + (key is not None) + all_
    if asked != 1:
        what = "more than one choice is given" if asked else "which of them?"
        hint = f"`lozenge dlq show {app_of(name)}` lists them; say PLACE..., or --key KEY, or --all"
        raise UsageError(f"{doing} dead letters of {app_of(name)}: {what}", hint=hint)
    return Choice(tuple(map(place_of, places or ())), key)


def _list(target: str, letters: "Sequence[Letter]", output: Format) -> None:
    from lozenge_deploy.observe.dead_letter_report import row_of

    if letters or output is Format.JSON:
        show([row_of(letter) for letter in letters], output, brief=_BRIEF)
    else:
        typer.echo(f"{target}: no dead letter stands", err=True)

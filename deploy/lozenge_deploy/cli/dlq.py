"""`lozenge dlq`: list, replay and drop unresolved dead letters."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lozenge.errors import DetectorError, UsageError
from lozenge_deploy.cli.author.dead_letter import debug
from lozenge_deploy.cli.options import CARD_NUMBERS, DRY_RUN, NAME, OUTPUT, app_of
from lozenge_deploy.cli.printing.output import OutputFormat, say, show, show_fields
from lozenge_deploy.cli.printing.terminal import echo
from lozenge_deploy.cli.wait import MESSAGE

if TYPE_CHECKING:
    from lozenge.contracts.dead_letters import DeadLetter
    from lozenge.contracts.record import RecordPosition
    from lozenge.kafka.settings import KafkaSettings
    from lozenge.protocol.dlq_resolutions import DeadLetterSelection

app = typer.Typer(help="Show, replay or drop dead letters: records that could not be processed.", no_args_is_help=True)

POSITIONS = Annotated[
    list[str] | None,
    typer.Argument(metavar="[POSITION]...", help='Partition and offset in the dead-letter topic, such as "2:9120".'),
]
KEY = Annotated[str | None, typer.Option(help="Those of one record key: an entity.")]
ALL = Annotated[bool, typer.Option("--all", help="All unresolved ones.")]
_BRIEF = ("position", "key", "attempt", "first_failed_at", "reason")


@app.command()
def ls(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One app, by kind of reason; by default all apps.")
    ] = None,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Count unresolved dead letters, with the first and last time and the reason."""
    from lozenge.kafka.dead_letter_queue import apps_with_dead_letters, unresolved
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.observe.dead_letter_report import kind_of, summaries

    kafka = KafkaSettings.load()
    if name is not None:
        rows = summaries(unresolved(kafka, app_of(name)), kind_of)
    else:
        found = (dead_letter for each in apps_with_dead_letters(kafka) for dead_letter in unresolved(kafka, each))
        rows = summaries(found, lambda dead_letter: dead_letter.app)
    if rows or output is OutputFormat.JSON:
        show(rows, output)
    else:
        echo("no unresolved dead letters", err=True)


@app.command("show")
def show_(
    name: NAME,
    position: Annotated[
        str | None, typer.Argument(metavar="[POSITION]", help='One of them with all its fields: "2:9120".')
    ] = None,
    count: Annotated[int, typer.Option("-n", min=1, help="How many of the newest.")] = 20,
    card_numbers: CARD_NUMBERS = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Show an app's unresolved dead letters; or one of them, decoded, with all its fields. Card numbers are masked."""
    from lozenge.contracts.record import parse_position
    from lozenge.kafka.dead_letter_queue import unresolved
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.observe.dead_letter_report import details

    target = app_of(name)
    where = parse_position(position) if position is not None else None
    kafka = KafkaSettings.load()
    if where is None:
        newest = sorted(unresolved(kafka, target), key=lambda dead_letter: dead_letter.at)[-count:]
        _audit(kafka, target, [each.position for each in newest], card_numbers)
        _list(target, newest, output, card_numbers=card_numbers)
        return
    found = details(kafka, target, where, card_numbers=card_numbers)
    _audit(kafka, target, [where], card_numbers)
    show_fields(found, output, card_numbers=card_numbers)


app.command()(debug)


@app.command()
def replay(
    name: NAME,
    positions: POSITIONS = None,
    key: KEY = None,
    all_: ALL = False,
    in_order: Annotated[
        bool, typer.Option("--in-order", help="Of one key, skip those after one that fails again.")
    ] = False,
    message: MESSAGE = "",
    dry_run: DRY_RUN = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Process dead letters again, in the order of their original records: a detector's by its present release.

    Those of a normaliser and of downstream return to the topic that they came from.
    """
    from lozenge.apps import is_stage
    from lozenge.kafka.dead_letter_queue import unresolved
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.operations.dlq_resend import refuse_unsendable

    choice, target, kafka = _choice("replaying", name, positions, key, all_), app_of(name), KafkaSettings.load()
    if not is_stage(target):
        _process(kafka, target, choice, in_order, message, dry_run, output)
        return
    if in_order:
        raise UsageError(
            f"replaying dead letters of {target}: it processes them later, so none can wait for one that fails again",
            hint="they are sent in their order anyway; or name them by position, one after the other",
        )
    chosen = choice.of(target, unresolved(kafka, target))
    refuse_unsendable(kafka, target, chosen)
    if dry_run or not chosen:
        _list(target, chosen, output)
        return
    from lozenge_deploy.operations.dlq_resend import resend

    sent = sum(line.dead_letters for line in resend(kafka, target, choice, message))
    say(f"{target}: {sent} sent back to their topics", {"app": target, "dead_letters": sent}, output)


def _process(
    kafka: "KafkaSettings",
    target: str,
    choice: "DeadLetterSelection",
    in_order: bool,
    message: str,
    dry_run: bool,
    output: OutputFormat,
) -> None:
    from lozenge.kafka.dead_letter_queue import unresolved
    from lozenge.protocol.dlq_resolutions import replayable
    from lozenge_deploy.control.client import Control
    from lozenge_deploy.releases import detector_process
    from lozenge_deploy.releases.release_store import Releases, environment_for

    with Control(kafka) as control:
        present = control.deployed(target)
    releases = Releases(kafka)
    release = releases.get(target, present.release)
    chosen = replayable(target, release.kind, choice.of(target, unresolved(kafka, target)))
    if dry_run or not chosen:
        _list(target, chosen, output)
        return
    python, steps = environment_for(release, releases), []
    for step in detector_process.replay(
        target, python, kafka, present.release, present.settings, choice, in_order=in_order, message=message
    ):
        steps.append(step)
        echo(f"{step['dead_letters']} processed, {step['remaining']} remaining", err=True)
    done: dict[str, Any] = {
        what: sum(s[what] for s in steps) for what in ("dead_letters", "alerts", "failed_again", "blocked")
    }
    left = steps[-1]["remaining"] if steps else 0
    sentence = f"{target} {present.release} processed {done['dead_letters']} dead letters: {done['alerts']} alerts"
    sentence += f", {done['failed_again']} failed again" if done["failed_again"] else ""
    sentence += f", {done['blocked']} wait for one that failed" if done["blocked"] else ""
    say(sentence, {"app": target, "release": present.release, **done, "remaining": left}, output)
    if left:
        raise DetectorError(
            f"replaying dead letters of {target}: {done['failed_again']} failed again in a row; {left} were not tried",
            hint=f"`lozenge dlq ls {target}` shows the reasons; deploy a fix first",
        )


@app.command()
def drop(
    name: NAME,
    positions: POSITIONS = None,
    key: KEY = None,
    all_: ALL = False,
    message: MESSAGE = "",
    dry_run: DRY_RUN = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Mark dead letters as resolved without processing them; they stay in their topic until its retention ends."""
    from lozenge.kafka.dead_letter_queue import unresolved
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.operations import dlq_resend

    choice, target, kafka = _choice("dropping", name, positions, key, all_), app_of(name), KafkaSettings.load()
    chosen = choice.of(target, unresolved(kafka, target))
    if dry_run or not chosen:
        _list(target, chosen, output)
        return
    dropped = sum(line.dead_letters for line in dlq_resend.drop(kafka, target, choice, message))
    say(f"{target}: {dropped} dropped", {"app": target, "dead_letters": dropped}, output)


def _choice(doing: str, name: str, positions: list[str] | None, key: str | None, all_: bool) -> "DeadLetterSelection":
    from lozenge.contracts.record import parse_position
    from lozenge.protocol.dlq_resolutions import DeadLetterSelection

    choices = bool(positions) + (key is not None) + all_
    if choices != 1:
        what = "more than one choice is given" if choices else "which of them?"
        hint = f"`lozenge dlq show {app_of(name)}` lists them; give POSITION..., --key KEY, or --all"
        raise UsageError(f"{doing} dead letters of {app_of(name)}: {what}", hint=hint)
    return DeadLetterSelection(tuple(map(parse_position, positions or ())), key)


def _audit(kafka: "KafkaSettings", target: str, positions: "Sequence[RecordPosition]", card_numbers: bool) -> None:
    from lozenge.contracts.record import format_positions
    from lozenge_deploy.operations import audit

    if card_numbers and positions:
        topic = kafka.topics.dead_letters(target)
        audit.record(kafka, audit.CARD_NUMBERS_SHOWN, f"{topic} {format_positions(positions)}")


def _list(
    target: str, dead_letters: "Sequence[DeadLetter]", output: OutputFormat, *, card_numbers: bool = False
) -> None:
    from lozenge_deploy.observe.dead_letter_report import row_of

    if dead_letters or output is OutputFormat.JSON:
        rows = [row_of(each, card_numbers=card_numbers) for each in dead_letters]
        show(rows, output, brief=_BRIEF, card_numbers=card_numbers)
    else:
        echo(f"{target}: no unresolved dead letters", err=True)

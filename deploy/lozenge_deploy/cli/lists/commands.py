"""`lozenge list`: reference lists, such as of blocked users, which people change while detectors look values up."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lozenge.errors import UsageError
from lozenge_deploy.cli.options import DRY_RUN, OUTPUT
from lozenge_deploy.cli.printing.output import OutputFormat, show, show_readable
from lozenge_deploy.cli.printing.terminal import echo

if TYPE_CHECKING:
    from lozenge_deploy.operations.lists.changes import ListChanges
    from lozenge_deploy.operations.lists.entry_texts import Given

app = typer.Typer(help="Reference lists: values that people list while detectors run.", no_args_is_help=True)

LIST = Annotated[str, typer.Argument(metavar="NAME", help="A list, such as blocked_cards.")]
VALUES = Annotated[list[str], typer.Argument(metavar="VALUE...", help="As events have it.")]
EXPIRES = Annotated[
    str, typer.Option(help='Until when they count, by event time: "30d" from now, a day, or a time with its zone.')
]
AUTHOR = Annotated[str, typer.Option(help="The author; by default the current user.")]
NEW = Annotated[bool, typer.Option("--new", help="Create the list if there is none of this name.")]
SHOWN = 50
"""Changes that a table shows; `-o wide` and `-o json` show all."""
ENTRY_BRIEF = ("value", "reason", "author", "added_at", "expires_at", "expired")


@app.command()
def add(
    name: LIST,
    values: VALUES,
    reason: Annotated[str, typer.Option(help="Why they are listed; alerts show it.")],
    expires: EXPIRES = "",
    author: AUTHOR = "",
    new: NEW = False,
    dry_run: DRY_RUN = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Add VALUEs to a list, or change their reason and expiry. Detectors look them up within seconds."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.operations.lists import changes, edit, entry_texts

    wanted = entry_texts.from_values(values, _given(author, reason, expires))
    made = edit.edit(
        KafkaSettings.load(),
        _checked(name),
        lambda present: changes.additions(name, present, wanted),
        create=new,
        dry_run=dry_run,
    )
    _show(name, made, output, done=not dry_run)


@app.command()
def remove(
    name: LIST,
    values: VALUES,
    reason: Annotated[str, typer.Option(help="Why they are removed; the audit log has it.")] = "",
    dry_run: DRY_RUN = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Remove VALUEs from a list: all of them, or none if one is not in it."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.operations.lists import changes, edit

    made = edit.edit(
        KafkaSettings.load(),
        _checked(name),
        lambda present: changes.removals(name, present, values),
        dry_run=dry_run,
        note=reason,
    )
    _show(name, made, output, done=not dry_run)


@app.command("import")
def import_(
    name: LIST,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV with the columns value, reason, expires_at.")],
    reason: Annotated[str, typer.Option(help="The reason of entries for which the file has none.")] = "",
    expires: EXPIRES = "",
    author: AUTHOR = "",
    replace: Annotated[bool, typer.Option("--replace", help="Remove every entry that the file lacks.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --replace: make the changes, not only show them.")] = False,
    new: NEW = False,
    dry_run: DRY_RUN = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Add the entries of a CSV file to a list, all or none. With --replace the list becomes the file."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.operations.lists import changes, edit, entry_texts

    wanted = entry_texts.from_file(file, _given(author, reason, expires))
    unconfirmed = replace and not yes
    made = edit.edit(
        KafkaSettings.load(),
        _checked(name),
        lambda present: changes.additions(name, present, wanted, replace=replace),
        create=new,
        dry_run=dry_run or unconfirmed,
        note=file.name,
    )
    _show(name, made, output, done=not (dry_run or unconfirmed))
    if unconfirmed and not dry_run and made.made:
        echo("nothing was changed; the same command with --yes makes these changes", err=True)


@app.command()
def ls(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A list; else all of them.")] = None,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Show the entries of a list; without NAME the lists, with the number of their entries and who uses them."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.operations.lists import list_usage
    from lozenge_deploy.operations.lists.changes import entry_row
    from lozenge_deploy.operations.lists.edit import entries_of, present

    kafka, at = KafkaSettings.load(), datetime.now(UTC)

    def expired(entry: Any) -> bool:
        return entry.expires_at is not None and entry.expires_at <= at

    if name is not None:
        entries = present(kafka, _checked(name)).values()
        rows = [entry_row(entry) | {"expired": expired(entry)} for entry in entries]
        show_readable(rows, output, f"list {name} has no entry", brief=ENTRY_BRIEF)
        return
    used, rows = list_usage.users(kafka), []
    for each in list_usage.names(kafka):
        entries = entries_of(kafka, each).values()
        newest = max((entry.added_at for entry in entries), default=None)
        rows.append(
            {
                "list": each,
                "entries": len(entries),
                "expired": sum(map(expired, entries)),
                "newest": newest.isoformat(timespec="seconds") if newest else None,
                "used_by": used.get(each, []),
            }
        )
    show_readable(rows, output, "there is no list; `lozenge list add NAME VALUE --reason ... --new` creates one")


def _given(author: str, reason: str, expires: str) -> "Given":
    from lozenge.process.user_name import user_name
    from lozenge_deploy.operations.lists.entry_texts import Given, expiry_of

    at = datetime.now(UTC).replace(microsecond=0)
    try:
        until = expiry_of(expires, at) if expires else None
    except ValueError as error:
        raise UsageError(f"reading --expires: {error}", hint="nothing was changed") from error
    return Given(author or user_name(), at, reason, until)


def _checked(name: str) -> str:
    from lozenge.contracts.topics import LIST_NAME

    if not re.fullmatch(LIST_NAME, name):
        raise UsageError(
            f"looking for list {name!r}: that is no name of a list",
            hint="a name has lower-case letters, digits and underscores, 64 at most: blocked_cards",
        )
    return name


def _show(name: str, made: "ListChanges", output: OutputFormat, *, done: bool) -> None:
    from lozenge_deploy.operations.lists.changes import rows

    found = [*rows(made)]
    if output is OutputFormat.JSON:
        show([{"list": name, "done": done, "kept": made.kept, "changes": found}], output)
        return
    echo(f"list {name}: {'' if done else 'would be '}{made.summary()}")
    shown = found if output is OutputFormat.WIDE else found[:SHOWN]
    if shown:
        show(shown, output)
    if len(found) > len(shown):
        echo(f"and {len(found) - len(shown)} more; -o wide shows all", err=True)

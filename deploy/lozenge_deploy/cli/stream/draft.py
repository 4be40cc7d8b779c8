"""`lozenge stream new`: the folder of a new stream, drafted from real records."""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from lozenge.errors import UsageError
from lozenge.process.user_name import user_name
from lozenge_deploy.cli.options import DRY_RUN, OUTPUT
from lozenge_deploy.cli.printing.output import OutputFormat
from lozenge_deploy.cli.printing.terminal import echo, print_json


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Lower-case letters, digits and underscores.")],
    records: Annotated[
        str, typer.Option("--from", metavar="FILE", help="JSON lines, a JSON array or one object; - is stdin.")
    ],
    key: Annotated[
        list[str] | None,
        typer.Option(help="An entity and its field: user=user_id. Once per key; the first keys the topic."),
    ] = None,
    time: Annotated[str, typer.Option(help="The field with the time of the event.")] = "",
    own_id: Annotated[str | None, typer.Option("--id", help="The field with a record's own id, or none.")] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            help="What a field is: amount=decimal, or string, long, double, boolean, timestamp, enum. Once per field.",
        ),
    ] = None,
    zone: Annotated[str, typer.Option(help="Where times without an offset are read: UTC, Europe/Berlin, +02:00.")] = "",
    source: Annotated[str, typer.Option(help="The name of the mapping; by default NAME.")] = "",
    topic: Annotated[str, typer.Option(help="The raw topic; by default NAME in upper case.")] = "",
    owner: Annotated[str, typer.Option(help="Who owns the stream; by default you.")] = "",
    dry_run: DRY_RUN = False,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Draft a stream from real records: schema, mapping and samples, which `stream check` and `stream test` accept.

    What was guessed is said here and in the files. Where several fields could be the time, the id or the key, the error
    says what to pass. Card numbers in the samples are replaced by made-up ones. Exit code 2: a person has to say more.
    """
    from lozenge.streams.folder import NAME
    from lozenge.streams.project import streams_folder
    from lozenge_deploy.operations.streams.upstream_tools import asked

    doing = f"drafting the stream {name}"
    folder = streams_folder() / name
    for text, what in ((name, "NAME"), (source or name, "--source")):
        if not re.fullmatch(NAME, text):
            raise UsageError(f"{doing}: {what}: a name has lower-case letters, digits and underscores, not {text!r}")
    if folder.exists():
        raise UsageError(f"{doing}: {folder} exists already", hint="choose another name, or edit that one")
    request = {
        "name": name,
        "source": source or name,
        "topic": topic or name.upper().replace("_", "-"),
        "owner": owner or user_name(),
        "keys": _pairs(key, "--key", "user=user_id"),
        "time": time,
        "own_id": own_id,
        "types": _pairs(types, "--type", "amount=decimal"),
        "zone": zone,
    }
    found = asked(doing, "lozenge_upstream.draft_stream", json.dumps(request), given=_content(records, doing))
    files = {folder / file: text for file, text in found["files"].items()}
    for file, text in files.items() if not dry_run else ():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    if output is OutputFormat.JSON:
        print_json({"files": [str(file) for file in files], "notes": found["notes"]})
        return
    for file in files:
        echo(f"{'would write' if dry_run else 'wrote'} {file}")
    for note in found["notes"]:
        echo(f"note: {note}")
    echo(f"next: look at the files, then `lozenge stream check {name}` and `lozenge stream test {name}`")


def _content(file: str, doing: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"{doing}: reading {file}: {error.strerror}", hint="name a file with records") from error


def _pairs(texts: Sequence[str] | None, option: str, example: str) -> dict[str, str]:
    """Names and values of "name=value" texts; raises UsageError."""
    pairs: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name and equals and value) or name in pairs:
            raise UsageError(f"reading {option} {text}", hint=f"write it as {option} {example}, each name once")
        pairs[name] = value
    return pairs

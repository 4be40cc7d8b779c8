"""`lozenge source new`: the folder of a new file source, drafted from one of its files."""

import json
import re
from pathlib import Path
from typing import Annotated

import typer

from lozenge.errors import UsageError
from lozenge.file_sources.definition import DECLARATION, NAME, Format
from lozenge.process.user_name import user_name
from lozenge_deploy.cli.options import DRY_RUN
from lozenge_deploy.cli.printing.terminal import echo

_SUFFIXES = {".parquet": Format.PARQUET, ".avro": Format.AVRO, ".csv": Format.CSV, ".jsonl": Format.JSON_LINES}
_TEXT = """title = {title}
owner = {owner}
# A folder, or a pattern such as "/data/2026-*/*.parquet"; s3:// is S3.
path = {path}
format = {format}
# The raw topic, which the mapping of a stream reads; the column with the key of a record.
topic = {topic}
key = {key}
# When a file is complete: "rename" (it has its name), "marker" (marker = "{{file}}.done"), "quiet" (for so long).
complete = "quiet"
quiet = "10s"
# What becomes of a copied file: "keep", "delete" or "move" (move_to = "/data/done").
after = "keep"
# The share of rows that may be dead letters, until a file fails.
max_bad = 0.01
{columns}"""


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Lower-case letters, digits and underscores.")],
    file: Annotated[str, typer.Option("--from", metavar="FILE", help="One of the files, with all columns.")],
    topic: Annotated[str, typer.Option(help="The raw topic.")],
    key: Annotated[str, typer.Option(help="The column with the key of a record; none unless set.")] = "",
    format: Annotated[Format | None, typer.Option(help="By default that of the name of the file.")] = None,
    dry_run: DRY_RUN = False,
) -> None:
    """Draft a file source from one of its files: its columns, and a pattern for all files next to it."""
    from lozenge.file_sources.folder import read, sources_folder
    from lozenge_deploy.operations.streams.upstream_tools import asked

    doing = f"drafting the file source {name}"
    folder = sources_folder() / name
    if not re.fullmatch(NAME, name):
        raise UsageError(f"{doing}: a name has lower-case letters, digits and underscores")
    if folder.exists():
        raise UsageError(f"{doing}: {folder} exists already", hint="choose another name, or edit that one")
    suffix = Path(file).suffix
    kind = format or _SUFFIXES.get(suffix)
    if kind is None:
        raise UsageError(f"{doing}: {file} has no usual name of a format", hint=f"--format {'|'.join(Format)}")
    place = file if "://" in file else str(Path(file).absolute())
    found = asked(doing, "lozenge_upstream.files.draft_source", place, kind, ",")
    if key and found["columns"] and key not in found["columns"]:
        raise UsageError(f"{doing}: --key: there is no column {key}", hint=f"there are {', '.join(found['columns'])}")
    columns = "".join(f"{json.dumps(column)} = {json.dumps(its)}\n" for column, its in found["columns"].items())
    given = {
        "title": name.replace("_", " ").capitalize(),
        "owner": user_name(),
        "path": f"{place.rpartition('/')[0]}/*{suffix}",
        "format": str(kind),
        "topic": topic,
        "key": key,
    }
    texts = {what: json.dumps(value, ensure_ascii=False) for what, value in given.items()}
    text = _TEXT.format(**texts, columns=f"\n[columns]\n{columns}" if columns else "")
    if dry_run:
        echo(text)
        return
    folder.mkdir(parents=True)
    (folder / DECLARATION).write_text(text, "utf-8")
    read(folder)
    echo(f"wrote {folder / DECLARATION}")
    echo(f"next: `lozenge source check {name}`, then `lozenge source deploy {name}`")

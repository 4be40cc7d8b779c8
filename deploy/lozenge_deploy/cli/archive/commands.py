"""`lozenge archive`, `lozenge sql` and `lozenge export`: the tables of topics."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lozenge.archive.settings import ARCHIVE_VARIABLE, DEFAULT_ARCHIVE
from lozenge.errors import LozengeError, UsageError
from lozenge_deploy.cli.options import OUTPUT
from lozenge_deploy.cli.printing.output import OutputFormat, say, show
from lozenge_deploy.cli.printing.terminal import echo, print_csv

if TYPE_CHECKING:
    import pyarrow as pa

    from lozenge.archive.verification import PartitionProof

app = typer.Typer(help="Tables of topics: what they have, and whether it is all of it.", no_args_is_help=True)

ARCHIVE = Annotated[Path, typer.Option("--archive", envvar=ARCHIVE_VARIABLE, help="The folder with the tables.")]
MEMORY = Annotated[int, typer.Option("--memory-mb", min=64, help="What a query may need of memory.")]
TABLE = Annotated[str | None, typer.Argument(metavar="TABLE", help="One table, or its topic; by default all.")]
MEMORY_MB = 1024
MOST_ROWS = 1_000
"""Of a result that is printed as a table."""


class ResultFormat(StrEnum):
    """How the result of a query is given."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


@app.command("ls")
def ls(archive: ARCHIVE = DEFAULT_ARCHIVE, output: OUTPUT = OutputFormat.TABLE) -> None:
    """Show every table: rows, files, days, and when it was committed last."""
    from lozenge.archive.queries import tables_in
    from lozenge_deploy.observe.archive_report import table_rows

    show(list(table_rows(tables_in(archive))), output)


@app.command()
def verify(
    table: TABLE = None,
    archive: ARCHIVE = DEFAULT_ARCHIVE,
    memory_mb: MEMORY = MEMORY_MB,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Prove that the tables have every record of their topics once: read the topics, and compare offsets.

    A record without a row has to be a dead letter of the sink. Rows of records that their topic no longer has are
    only checked for repeats. Exit code 1 if a record is missing, is there twice, or is in no topic.
    """
    from lozenge.archive.queries import table_named, tables_in
    from lozenge.archive.verification import totals
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.observe.archive_report import proofs

    tables = [table_named(archive, table)] if table else tables_in(archive)
    found = list(proofs(KafkaSettings.load(), tables, memory_mb))
    show([_proof_row(each) for each in found], output)
    wrong = [each for each in found if not each.clean]
    if output is not OutputFormat.JSON:
        sums = totals(found)
        echo(", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sums.items()))
    if wrong:
        at = "; ".join(f"{each.topic} {each.partition}: {', '.join(each.problems)}" for each in wrong)
        raise LozengeError(
            f"verifying {archive}: {at}",
            hint="a missing record is still in its topic; `lozenge archive verify TABLE -o json` names the partitions",
        )


def sql(
    query: Annotated[str, typer.Argument(metavar="QUERY", help='One SELECT, such as "select * from alerts limit 10".')],
    archive: ARCHIVE = DEFAULT_ARCHIVE,
    memory_mb: MEMORY = MEMORY_MB,
    output: Annotated[
        ResultFormat, typer.Option("-o", "--output", help="How the result is given.")
    ] = ResultFormat.TABLE,
    file: Annotated[Path | None, typer.Option("--file", help="Where csv or parquet is written.")] = None,
) -> None:
    """Run a query of DuckDB over the tables of the archive; it reads, and changes nothing.

    Each topic is a table: events_auth, alerts_large_amount, notifications, feedback, dead_letters_upstream.
    `events`, `alerts` and `dead_letters` are all of a kind. `lozenge archive ls` lists them.
    """
    from lozenge.archive.queries import ArchiveQueries, tables_in

    if output is ResultFormat.PARQUET and file is None:
        raise UsageError("running SQL: Parquet is no text for a terminal", hint="name a file: --file result.parquet")
    if file is not None and output not in (ResultFormat.CSV, ResultFormat.PARQUET):
        raise UsageError(f"running SQL: {output} is printed", hint="--file takes -o csv or -o parquet")
    target = file and file.absolute()
    with ArchiveQueries(tables_in(archive), memory_mb=memory_mb, written=target) as queries:
        if target is not None:
            rows = queries.export(query, target, output.value)
            say(f"{rows} rows in {file}", {"file": str(target), "rows": rows}, OutputFormat.TABLE)
            return
        _print(queries.read(query), output)


def export(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A table, or its topic.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to; its suffix is .parquet or .csv.")],
    since: Annotated[str | None, typer.Option("--from", help="The first day, such as 2026-03-01.")] = None,
    until: Annotated[str | None, typer.Option("--to", help="The last day.")] = None,
    archive: ARCHIVE = DEFAULT_ARCHIVE,
    memory_mb: MEMORY = MEMORY_MB,
    output: OUTPUT = OutputFormat.TABLE,
) -> None:
    """Write the rows of a table, or of some of its days, as one file, by partition and offset.

    A day is the date of a record's Kafka timestamp in UTC.
    """
    from lozenge.archive.queries import ArchiveQueries, table_named, whole_days

    kind = file.suffix.removeprefix(".")
    if kind not in (ResultFormat.PARQUET, ResultFormat.CSV):
        raise UsageError(f"exporting to {file}: a file is .parquet or .csv", hint=f"name it {file.stem}.parquet")
    held = table_named(archive, table)
    target = file.absolute()
    with ArchiveQueries([held], memory_mb=memory_mb, written=target) as queries:
        rows = queries.export(whole_days(held, _day(since, "--from"), _day(until, "--to")), target, kind)
    row = {"table": held.view, "file": str(target), "rows": rows}
    say(f"{rows} rows of {held.view} in {file}", row, output)


def _day(text: str | None, option: str) -> Any:
    from datetime import date

    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"reading {option}: {text} is no day", hint=f"write it as {option} 2026-03-01") from error


def _print(result: "pa.RecordBatchReader", output: ResultFormat) -> None:
    if output is ResultFormat.TABLE:
        rows, more = _first_rows(result)
        show(rows, OutputFormat.TABLE, brief=result.schema.names)
        if more:
            echo(f"the first {MOST_ROWS} rows; -o csv or -o json has all", err=True)
    elif output is ResultFormat.JSON:
        show([row for batch in result for row in batch.to_pylist()], OutputFormat.JSON)
    else:
        _print_csv(result)


def _first_rows(result: "pa.RecordBatchReader") -> tuple[list[dict[str, Any]], bool]:
    found: list[dict[str, Any]] = []
    for batch in result:
        found += batch.slice(0, MOST_ROWS + 1 - len(found)).to_pylist()
        if len(found) > MOST_ROWS:
            return found[:MOST_ROWS], True
    return found, False


def _print_csv(result: "pa.RecordBatchReader") -> None:
    print_csv(result.schema.names)
    for batch in result:
        for row in batch.to_pylist():
            print_csv(row.values())


def _proof_row(each: "PartitionProof") -> dict[str, Any]:
    return {
        "topic": each.topic,
        "partition": each.partition,
        "end": each.end,
        "rows": each.rows,
        "dead_letters": each.dead_letters,
        "unchecked": each.unchecked,
        "missing": len(each.missing),
        "twice": len(each.twice),
        "foreign": len(each.foreign),
    }

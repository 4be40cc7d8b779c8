"""`python -m lozenge_deploy.demo.feed`: generates history, then live traffic, then a summary of the injected cases.

It ends after `--for`, on Ctrl-C or on SIGTERM. In every case it completes the started cases, flushes and writes the
summary. Exit codes are those of `lozenge.errors`; 1 also if the broker did not acknowledge everything.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from lozenge.durations import duration
from lozenge.errors import LozengeError, UsageError
from lozenge.kafka import topic_admin
from lozenge.kafka.settings import KafkaSettings
from lozenge.process.shutdown import StopSignal
from lozenge_deploy.demo.feed.formats import FORMS, JSON, RAW_LOGIN
from lozenge_deploy.demo.feed.generator import Generator
from lozenge_deploy.demo.feed.payment_files import PaymentFiles
from lozenge_deploy.demo.feed.population import LEAST_CARDS, LEAST_MERCHANTS
from lozenge_deploy.demo.feed.producer import RecordProducer
from lozenge_deploy.demo.feed.schedule import flat_out, steady, throttled
from lozenge_deploy.demo.feed.written_records import WrittenRecords


class FeedFormat(StrEnum):
    """The raw forms."""

    json = "json"
    iso = "iso"


def seconds(text: str) -> float:
    """`60s`, `1.5m` or `2h` in seconds."""
    try:
        value = duration(text).total_seconds()
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if value < 0:
        raise typer.BadParameter(f"{text!r} is negative")
    return value


def run(
    bootstrap: Annotated[str, typer.Option(help="Kafka brokers; by default LOZENGE_KAFKA_BOOTSTRAP.")] = "",
    past_days: Annotated[int, typer.Option(min=0, help="Days of history.")] = 90,
    count: Annotated[int, typer.Option(min=0, help="Records of history.")] = 100_000,
    rate: Annotated[float, typer.Option(min=0, help="Live records per second; 0 for as fast as possible.")] = 50,
    for_: Annotated[
        float | None, typer.Option("--for", parser=seconds, help="Live time; by default until stopped.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Equal seeds, times and counts give equal records.")] = 7,
    cards: Annotated[int, typer.Option(min=LEAST_CARDS)] = 1000,
    merchants: Annotated[int, typer.Option(min=LEAST_MERCHANTS)] = 400,
    malformed_rate: Annotated[float, typer.Option(min=0, max=1, help="Share of malformed records.")] = 0.002,
    case_every: Annotated[float, typer.Option(min=0.1, help="Seconds between two live cases.")] = 3.0,
    logins: Annotated[
        bool | None, typer.Option(help="Send logins too, to payments in JSON; by default if their topic is there.")
    ] = None,
    format: Annotated[FeedFormat, typer.Option(help="The raw form.")] = FeedFormat.json,
    files: Annotated[Path | None, typer.Option(help="Write more payments, in JSON, as Parquet files there.")] = None,
    summary: Annotated[Path | None, typer.Option(help="File for the JSON summary.")] = None,
) -> None:
    """Sends generated card authorisations and records what a detector should find in them."""
    stopped = StopSignal()
    form = FORMS[format]
    end = datetime.now(UTC)
    generator = partial(
        Generator,
        end - timedelta(days=past_days),
        seed=seed,
        cards=cards,
        merchants=merchants,
        malformed_rate=malformed_rate,
        form=form,
    )
    feed = generator()
    sender: RecordProducer | None = None
    past = 0
    try:
        if logins and form is not JSON:
            raise UsageError("reading --logins: payments in ISO 8583 name no account", hint="leave --format out")
        if files and form is not JSON:
            raise UsageError("reading --files: files have the fields of payments in JSON", hint="leave --format out")
        kafka = KafkaSettings.load(**({"bootstrap": bootstrap} if bootstrap else {}))
        if logins is None:
            logins = form is JSON and kafka.topics.prefixed(RAW_LOGIN) in topic_admin.partitions(kafka)
        if logins:
            feed = generator(logins=True)
        sender = RecordProducer(kafka, [form.topic, *[RAW_LOGIN] * logins], stopped)
        if past_days and count:
            sender.send(feed.past(end, count))
            past = feed.written.sent + feed.written.logins
            typer.echo(f"{past} records of the last {past_days} days sent", err=True)
        slots = _slots(rate, for_, stopped)
        written = PaymentFiles(files, feed.in_file) if files else None
        sender.send(feed.live(written.alongside(slots) if written else slots, case_every))
        if written:
            written.close()
        for raw in feed.finish(datetime.now(UTC)):
            sender.send_one(raw)
    except LozengeError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(error.exit_code) from error
    finally:
        if sender is not None:
            sender.close()
        failed = sender.failed if sender else 0
        if summary is not None:
            _write(summary, feed.written, {"topic": form.topic, "seed": seed, "past": past, "failed": failed})
    if failed:
        of = feed.written.sent + feed.written.logins
        typer.echo(f"the broker did not acknowledge {failed} of {of} records", err=True)
        raise typer.Exit(1)


def _slots(rate: float, limit: float | None, stopped: StopSignal) -> Iterator[int]:
    if rate == 0:
        return flat_out(limit, stopped)
    return throttled(steady(datetime.now(UTC), rate, limit), stopped)


def _write(path: Path, written: WrittenRecords, run: dict[str, object]) -> None:
    """Replaces the summary in one step, so that a reader never sees a part of it."""
    cases = [asdict(case) | {"at": case.at.isoformat()} for case in written.cases]
    sent = {"sent": written.sent, "logins": written.logins, "rows": written.rows}
    found = {"malformed": dict(written.malformed), "cases": cases}
    text = json.dumps({**run, **sent, **found}, indent=1)
    draft = path.with_name(path.name + ".part")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(run)
    sys.exit(app())

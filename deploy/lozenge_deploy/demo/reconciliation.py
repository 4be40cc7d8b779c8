"""Does it add up? What was sent against what came out of every stage, and what should have been found.

    python -m lozenge_deploy.demo.reconciliation --bootstrap ... --summary feed.json --webhook http://...

prints the table and ends with 1 if a line does not hold.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

from lozenge.contracts import ids, topics
from lozenge.errors import LozengeError
from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.demo.topic_counts import Alert, Counts, count
from lozenge_deploy.releases.build import CHECKOUT
from lozenge_deploy.releases.detector_catalog import detectors_in, rekeys_of

SOURCE = "auth_json"
"""The source by which upstream names the events of AUTH-JSON."""

REFUSALS = {
    "empty_value": "empty",
    "invalid_json": "invalid-json",
    "invalid_utf8": "invalid-utf8",
    "not_an_object": "invalid-json",
    "missing_card": "missing:card_id",
    "missing_amount": "missing:amount",
    "wrong_type": "type:amount",
    "impossible_time": "format:event_time",
    "future_time": "future:event_time",
}
"""How upstream must name each way in which the feed spoils a record."""


class Case(BaseModel):
    """An injected case, as the feed's summary names it."""

    kind: str
    txn_ids: tuple[str, ...]

    @property
    def events(self) -> frozenset[str]:
        """The ids of its events."""
        return frozenset(ids.event_id(SOURCE, txn_id) for txn_id in self.txn_ids)


class Summary(BaseModel):
    """What the feed says it did."""

    sent: int
    failed: int
    poison: dict[str, int]
    cases: list[Case]


@dataclass(frozen=True)
class Line:
    """One comparison; `expected` is None where a number is only for information."""

    what: str
    actual: int
    expected: int | None = None
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether the comparison is as it must be."""
        return self.expected is None or self.actual == self.expected


def balance(counts: Counts, feed: Summary, lateness: Mapping[str, timedelta] = MappingProxyType({})) -> list[Line]:
    """Every line, in the order in which records flow; `lateness` is that of the aggregates among the detectors."""
    return [*_upstream(counts, feed), *_detectors(counts), *_downstream(counts), *_cases(counts, feed, lateness)]


def table(lines: list[Line]) -> Table:
    """The lines for people."""
    drawn = Table(title="Balance", title_justify="left", pad_edge=False)
    drawn.add_column("")
    drawn.add_column("is", justify="right")
    drawn.add_column("must be", justify="right")
    drawn.add_column("")
    for line in lines:
        verdict = "" if line.expected is None else "[green]ok[/]" if line.holds else "[bold red]WRONG[/]"
        must = "" if line.expected is None else f"{line.expected:,}"
        drawn.add_row(line.what, f"{line.actual:,}", must, " ".join(filter(None, [verdict, line.note])))
    return drawn


def as_json(lines: list[Line]) -> list[dict[str, Any]]:
    """The lines for programs."""
    return [{"what": x.what, "is": x.actual, "must_be": x.expected, "holds": x.holds, "note": x.note} for x in lines]


def _upstream(counts: Counts, feed: Summary) -> list[Line]:
    refused = sum(counts.refused.values())
    wanted: Counter[str] = Counter()
    for reason, number in feed.poison.items():
        wanted[REFUSALS[reason]] += number
    lines = [
        Line("raw records (against the feed's count)", counts.raw, feed.sent - feed.failed),
        Line("events + dead letters of upstream", counts.event_ids + refused, counts.raw),
        Line("records repeated by upstream", counts.repeats, 0),
    ]
    for topic, (_, distinct) in counts.copies.items():
        if topic == topics.events_by("account"):
            lines.append(Line(f"events in {topic}", distinct, note="those that have an account"))
        else:
            lines.append(Line(f"events in {topic}", distinct, counts.event_ids))
    reasons = sorted(wanted.keys() | counts.refused.keys())
    return lines + [Line(f"dead letters: {reason}", counts.refused[reason], wanted[reason]) for reason in reasons]


def _detectors(counts: Counts) -> list[Line]:
    lines = []
    for detector, (done, of) in counts.judged.items():
        alerts = counts.alerts[detector]
        lines += [
            Line(f"{detector}: events judged", done, of),
            Line(f"{detector}: different alert ids", len({alert.id for alert in alerts}), len(alerts)),
            Line(f"{detector}: dead letters", counts.dead_letters[detector], 0),
        ]
    return lines


def _downstream(counts: Counts) -> list[Line]:
    alert_ids = {alert.id for alerts in counts.alerts.values() for alert in alerts}
    notified = set(counts.notified)
    return [
        Line("notifications (against alerts)", len(counts.notified), len(alert_ids)),
        Line("alerts without a notification", len(alert_ids - notified), 0),
        Line("different notification ids", len(counts.notification_ids), len(counts.notified)),
        Line("gaps in seq", counts.seq_gaps, 0),
        Line("webhooks received, different ids", counts.webhooks["distinct"], len(counts.notification_ids)),
        Line("webhooks with a bad signature", counts.webhooks["invalid"], 0),
        Line("webhooks repeated (allowed: at least once)", counts.webhooks["repeats"]),
        Line("dead letters of downstream", counts.dead_letters["downstream"], 0),
    ]


def _cases(counts: Counts, feed: Summary, lateness: Mapping[str, timedelta]) -> list[Line]:
    lines = []
    for kind in sorted({case.kind for case in feed.cases} | counts.alerts.keys()):
        cases = [case.events for case in feed.cases if case.kind == kind]
        if kind not in counts.alerts:
            lines.append(Line(f"cases of {kind}", len(cases), note="no such detector ran"))
            continue
        missed, other = match(cases, counts.alerts[kind])
        late = [case for case in missed if kind in lateness and _is_late(case, counts, lateness[kind])]
        note = f"{len(late)} more came later than the declared lateness" if late else ""
        lines.append(Line(f"cases of {kind} found", len(cases) - len(missed), len(cases) - len(late), note))
        lines.append(Line(f"alerts of {kind} on ordinary traffic", other))
    return lines


def match(cases: Sequence[frozenset[str]], alerts: Sequence[Alert]) -> tuple[list[frozenset[str]], int]:
    """The cases of which no alert names an event, and the number of alerts that name no event of any case."""
    injected = frozenset().union(*cases)
    named = frozenset().union(*(alert.evidence for alert in alerts))
    return [case for case in cases if case.isdisjoint(named)], sum(a.evidence.isdisjoint(injected) for a in alerts)


def _is_late(case: frozenset[str], counts: Counts, lateness: timedelta) -> bool:
    """Whether an aggregate was free to drop an event of the case: its partition was that far ahead already."""
    return any(counts.late.get(event_id, timedelta()) > lateness for event_id in case)


def main(
    bootstrap: Annotated[str, typer.Option(help="Kafka brokers.")],
    summary: Annotated[Path, typer.Option(help="The feed's JSON summary.")],
    webhook: Annotated[str, typer.Option(help="Base URL of the webhook receiver.")],
    detectors: Annotated[Path, typer.Option(help="The folder of detectors.")] = CHECKOUT / "detectors",
) -> None:
    """Balances a diamond that has come to rest."""
    try:
        lines = balance_of(KafkaSettings.load(bootstrap=bootstrap), summary, webhook, detectors)
    except LozengeError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(error.exit_code) from error
    Console().print(table(lines))
    raise typer.Exit(not all(line.holds for line in lines))


def balance_of(kafka: KafkaSettings, summary: Path, webhook: str, folder: Path) -> list[Line]:
    """The balance of the diamond at `kafka` with the detectors of `folder`."""
    found = detectors_in(folder)
    inputs = {d.name: d.input for d in found}
    feed = Summary.model_validate(json.loads(summary.read_text("utf-8")))
    lateness = {d.name: d.declaration.lateness for d in found if d.declaration.lateness is not None}
    watched = frozenset().union(*(case.events for case in feed.cases if case.kind in lateness))
    counts = count(kafka, inputs=inputs, rekeys=rekeys_of(found), webhook_url=webhook, watched=watched)
    return balance(counts, feed, lateness)


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(main)
    app()

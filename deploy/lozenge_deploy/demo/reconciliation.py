"""Reconciliation: what was sent compared with the output of every stage, and with the cases that should be found.

    python -m lozenge_deploy.demo.reconciliation --bootstrap ... --summary feed.json --webhook http://...

prints the table and ends with 1 if a check fails.
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

from lozenge.contracts import ids
from lozenge.errors import LozengeError
from lozenge.kafka.settings import KafkaSettings
from lozenge.streams.project import Streams
from lozenge_deploy.demo.feed.formats import LOGINS, STREAM
from lozenge_deploy.demo.topic_counts import CountedAlert, TopicCounts, count
from lozenge_deploy.releases.build import CHECKOUT
from lozenge_deploy.releases.detector_catalog import DetectorFolder, detectors_in, merges_of, rekeys_of, streams_of

SOURCE = "auth_json"
"""The source by which upstream names the events of AUTH-JSON."""

REJECTIONS = {
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
"""The reason with which upstream must reject each kind of malformed record."""


NOT_IN_EVERY_EVENT = ("account", "device")
"""The keys that an event may lack; it is then not in the copy by that key."""


class ReportedCase(BaseModel):
    """An injected case in the generator's summary."""

    kind: str
    txn_ids: tuple[str, ...]

    @property
    def events(self) -> frozenset[str]:
        """The ids of its events."""
        return frozenset(ids.event_id(SOURCE, txn_id) for txn_id in self.txn_ids)


class Summary(BaseModel):
    """The generator's summary; `rows` are the payments that it wrote into files."""

    sent: int
    logins: int = 0
    rows: int = 0
    failed: int
    malformed: dict[str, int]
    cases: list[ReportedCase]


@dataclass(frozen=True)
class Comparison:
    """One comparison; `expected` is None where a number is only for information."""

    name: str
    actual: int
    expected: int | None = None
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether the numbers agree."""
        return self.expected is None or self.actual == self.expected


def reconcile(
    counts: TopicCounts, feed: Summary, lateness: Mapping[str, timedelta] = MappingProxyType({})
) -> list[Comparison]:
    """Every check, in the order in which records flow; `lateness` is that of the aggregates among the detectors."""
    return [*_upstream(counts, feed), *_detectors(counts), *_downstream(counts), *_cases(counts, feed, lateness)]


def table(checks: list[Comparison]) -> Table:
    """The checks for people."""
    drawn = Table(title="Reconciliation", title_justify="left", pad_edge=False)
    drawn.add_column("")
    drawn.add_column("actual", justify="right")
    drawn.add_column("expected", justify="right")
    drawn.add_column("")
    for check in checks:
        mark = "" if check.expected is None else "[green]ok[/]" if check.ok else "[bold red]WRONG[/]"
        expected = "" if check.expected is None else f"{check.expected:,}"
        drawn.add_row(check.name, f"{check.actual:,}", expected, " ".join(filter(None, [mark, check.note])))
    return drawn


def as_rows(checks: list[Comparison]) -> list[dict[str, Any]]:
    """The checks for programs."""
    return [
        {"check": check.name, "actual": check.actual, "expected": check.expected, "ok": check.ok, "note": check.note}
        for check in checks
    ]


def _upstream(counts: TopicCounts, feed: Summary) -> list[Comparison]:
    rejected = sum(counts.rejected.values())
    wanted: Counter[str] = Counter()
    for reason, number in feed.malformed.items():
        wanted[REJECTIONS[reason]] += number
    lines = [
        Comparison("raw records (compared with the feed's count)", counts.raw, feed.sent - feed.failed + feed.rows),
        Comparison("events + dead letters of upstream", counts.event_ids + rejected, counts.raw),
        Comparison("records repeated by upstream", counts.repeats, 0),
    ]
    for key, (_, distinct) in counts.copies.items():
        if key in NOT_IN_EVERY_EVENT:
            lines.append(Comparison(f"events by {key}", distinct, note="those that have one"))
        else:
            lines.append(Comparison(f"events by {key}", distinct, counts.event_ids))
    for key, (_, distinct) in counts.merged.items():
        lines.append(Comparison(f"events by {key}, with those of other streams", distinct))
    if logins := counts.logins:
        lines += [
            Comparison("raw logins (compared with the feed's count)", logins.raw, feed.logins),
            Comparison("logins that became events", logins.event_ids, logins.raw),
            Comparison("logins repeated by upstream", logins.events - logins.event_ids, 0),
            Comparison("dead letters of logins", logins.rejected, 0),
        ]
    reasons = sorted(wanted.keys() | counts.rejected.keys())
    return lines + [
        Comparison(f"dead letters: {reason}", counts.rejected[reason], wanted[reason]) for reason in reasons
    ]


def _detectors(counts: TopicCounts) -> list[Comparison]:
    lines = []
    for detector, (done, of) in counts.processed.items():
        alerts = counts.alerts[detector]
        lines += [
            Comparison(f"{detector}: events processed", done, of),
            Comparison(f"{detector}: different alert ids", len({alert.id for alert in alerts}), len(alerts)),
            Comparison(f"{detector}: dead letters", counts.dead_letters[detector], 0),
        ]
    return lines


def _downstream(counts: TopicCounts) -> list[Comparison]:
    alert_ids = {alert.id for alerts in counts.alerts.values() for alert in alerts}
    notified = set(counts.notified)
    return [
        Comparison("notifications (compared with alerts)", len(counts.notified), len(alert_ids)),
        Comparison("alerts without a notification", len(alert_ids - notified), 0),
        Comparison("different notification ids", len(counts.notification_ids), len(counts.notified)),
        Comparison("gaps in seq", counts.seq_gaps, 0),
        Comparison("webhooks received, different ids", counts.webhooks["distinct"], len(counts.notification_ids)),
        Comparison("webhooks with a bad signature", counts.webhooks["invalid"], 0),
        Comparison("webhooks repeated (allowed: at least once)", counts.webhooks["repeats"]),
        Comparison("dead letters of downstream", counts.dead_letters["downstream"], 0),
    ]


def _cases(counts: TopicCounts, feed: Summary, lateness: Mapping[str, timedelta]) -> list[Comparison]:
    lines = []
    injected = frozenset().union(*(case.events for case in feed.cases))
    for kind in sorted({case.kind for case in feed.cases} | counts.alerts.keys()):
        cases = [case.events for case in feed.cases if case.kind == kind]
        if kind not in counts.alerts:
            lines.append(Comparison(f"cases of {kind}", len(cases), note="no such detector ran"))
            continue
        missed, other = match(cases, counts.alerts[kind])
        ordinary = [alert for alert in other if alert.evidence.isdisjoint(injected)]
        more = f"{len(other) - len(ordinary)} more on cases of other kinds" if len(other) > len(ordinary) else ""
        late = [case for case in missed if kind in lateness and _is_late(case, counts, lateness[kind])]
        note = f"{len(late)} more arrived later than the declared lateness" if late else ""
        lines.append(Comparison(f"cases of {kind} found", len(cases) - len(missed), len(cases) - len(late), note))
        lines.append(Comparison(f"alerts of {kind} on ordinary traffic", len(ordinary), note=more))
    return lines


def match(
    cases: Sequence[frozenset[str]], alerts: Sequence[CountedAlert]
) -> tuple[list[frozenset[str]], list[CountedAlert]]:
    """The cases of which no alert names an event, and the alerts that name no event of any of these cases."""
    injected = frozenset().union(*cases)
    named = frozenset().union(*(alert.evidence for alert in alerts))
    missed = [case for case in cases if case.isdisjoint(named)]
    return missed, [alert for alert in alerts if alert.evidence.isdisjoint(injected)]


def _is_late(case: frozenset[str], counts: TopicCounts, lateness: timedelta) -> bool:
    """Whether an aggregate could drop an event of the case as late, compared with its partition."""
    return any(counts.late.get(event_id, timedelta()) > lateness for event_id in case)


def main(
    bootstrap: Annotated[str, typer.Option(help="Kafka brokers.")],
    summary: Annotated[Path, typer.Option(help="The generator's JSON summary.")],
    webhook: Annotated[str, typer.Option(help="Base URL of the webhook receiver.")],
    detectors: Annotated[Path, typer.Option(help="The folder of detectors.")] = CHECKOUT / "detectors",
) -> None:
    """Reconciles a drained platform."""
    try:
        checks = reconciliation_of(KafkaSettings.load(bootstrap=bootstrap), summary, webhook, detectors_in(detectors))
    except LozengeError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(error.exit_code) from error
    Console().print(table(checks))
    raise typer.Exit(not all(check.ok for check in checks))


def reconciliation_of(
    kafka: KafkaSettings, summary: Path, webhook: str, detectors: Sequence[DetectorFolder]
) -> list[Comparison]:
    """The reconciliation of the platform at `kafka` with the detectors that ran there."""
    inputs = {d.name: d.input(kafka.topics) for d in detectors}
    feed = Summary.model_validate(json.loads(summary.read_text("utf-8")))
    lateness = {d.name: d.declaration.lateness for d in detectors if d.declaration.lateness is not None}
    watched = frozenset().union(*(case.events for case in feed.cases if case.kind in lateness))
    stream = Streams.load(detectors[0].folder).get(STREAM)
    copies = {key: kafka.topics.events(STREAM, key) for key in rekeys_of(stream, detectors)}
    merged = {key: kafka.topics.merged(key) for key in merges_of(stream, detectors)}
    logins_by = next((each.app for each in streams_of(detectors) if each.name == LOGINS), "")
    counts = count(
        kafka, inputs=inputs, copies=copies, merged=merged, logins_by=logins_by, webhook_url=webhook, watched=watched
    )
    return reconcile(counts, feed, lateness)


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(main)
    app()

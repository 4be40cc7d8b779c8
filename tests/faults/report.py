"""The report of a campaign: a table for the terminal, JSON for programs, and a self-contained page."""

import json
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.faults.campaign import Campaign, recoveries
from tests.faults.plan import JOBS, TARGETS

PAGE = Path(__file__).with_name("page.html")
Rows = Sequence[Sequence[object]]


def as_json(campaign: Campaign) -> dict[str, Any]:
    """All of it for programs; times in seconds."""
    order = campaign.order
    incidents = [
        {
            "at": round(s.at, 1),
            "faults": [str(f) for f in s.faults],
            "said": [said for said in s.said if said],
            "recovery": s.recovery and round(s.recovery, 1),
            "why": s.why,
        }
        for s in campaign.struck
    ]
    return {
        "holds": campaign.holds,
        "seed": order.seed,
        "replay": replay(campaign),
        "summary": summary(campaign),
        "faults": faults(campaign),
        "seconds": round(campaign.seconds, 1),
        "skipped": campaign.skipped,
        "why": campaign.why,
        "incidents": incidents,
        "recovery": [
            dict(zip(("kind", "times", "p50", "p95", "max"), row, strict=True)) for row in recovery_rows(campaign)
        ],
        "verified": campaign.result,
    }


def faults(campaign: Campaign) -> int:
    """How many faults there were."""
    return sum(len(struck.faults) for struck in campaign.struck)


def summary(campaign: Campaign) -> str:
    """One line, with its bound: n faults without a failure show no more than that."""
    if not campaign.holds:
        never = sum(struck.recovery is None for struck in campaign.struck)
        wrong = sum(each["count"] for each in campaign.result.get("wrong", []))
        reason = campaign.why or campaign.result.get("error", "").strip()
        return f"FAILED: {wrong} findings, {never} times not back in time {reason}".strip()
    n = faults(campaign)
    bound = f"; so at most {min(1.0, 3 / n):.1%} a fault would do harm (95 %)" if n else ""
    return f"0 lost, 0 double in {campaign.result['counts']['raw records']:,} raw records under {n} faults{bound}"


def replay(campaign: Campaign) -> str:
    """The command that gives the same faults again."""
    order = campaign.order
    kinds = "" if order.kinds == tuple(TARGETS) else f" --kinds '{','.join(order.kinds)}'"
    together = f" --together {order.together}" if order.together > 1 else ""
    detectors = "" if order.detectors == JOBS else f" --detectors {','.join(order.detectors)}"
    extras = f" --with {','.join(order.extras)}" if order.extras else ""
    return (
        f'make faults ARGS="--seed {order.seed} --faults {order.faults} --events {order.records} '
        f'--rate {order.rate:g}{kinds}{together}{detectors}{extras}"'
    )


def recovery_rows(campaign: Campaign) -> list[tuple[str, int, float, float, float]]:
    """Kind, how often, p50, p95 and the longest, the slowest kind first; "all" at the end."""
    times = sorted(recoveries(campaign.struck).items(), key=lambda item: -max(item[1]))
    every = [seconds for _, each in times for seconds in each]
    return [_row(kind, each) for kind, each in [*times, ("all", every)] if each]


def _row(kind: str, seconds: Sequence[float]) -> tuple[str, int, float, float, float]:
    p50, p95, longest = (round(_quantile(seconds, share), 1) for share in (0.5, 0.95, 1.0))
    return kind, len(seconds), p50, p95, longest


def incident_rows(campaign: Campaign) -> Rows:
    """Time, faults, recovery, and what there is to say."""
    return [
        (
            f"{s.at:.0f}",
            "; ".join(f"{f.after:+.0f} s {f}" if f.after else str(f) for f in s.faults),
            "NOT BACK" if s.recovery is None else f"{s.recovery:.1f}",
            "; ".join(filter(None, [*s.said, s.why])),
        )
        for s in campaign.struck
    ]


def show(campaign: Campaign, console: Console) -> None:
    """The tables and the summary."""
    console.print(_table("Recovery, seconds", ("", "times", "p50", "p95", "max"), recovery_rows(campaign)))
    counts = campaign.result.get("counts", {})
    console.print(_table("Counted by the verifier", ("", ""), [(what, f"{n:,}") for what, n in counts.items()]))
    for wrong in campaign.result.get("wrong", []):
        console.print(f"{wrong['name']} at {wrong['stage']}: {wrong['count']}, such as {'; '.join(wrong['examples'])}")
    if campaign.skipped:
        console.print(f"SKIPPED, full disks: {campaign.skipped}")
    console.print(summary(campaign), style="green" if campaign.holds else "bold red")
    if not campaign.holds:
        console.print(f"seed {campaign.order.seed}; the same faults again: {replay(campaign)}")


def write(campaign: Campaign, folder: Path) -> Path:
    """`report.json` and the page `report.html` in `folder`; gives the page."""
    (folder / "report.json").write_text(json.dumps(as_json(campaign), indent=1))
    page = folder / "report.html"
    wrong = [(w["name"], w["stage"], w["count"], "; ".join(w["examples"])) for w in campaign.result.get("wrong", [])]
    page.write_text(
        Template(PAGE.read_text("utf-8")).substitute(
            mood="good" if campaign.holds else "bad",
            summary=escape(summary(campaign)),
            facts=escape(
                f"seed {campaign.order.seed}, {faults(campaign)} faults in {len(campaign.struck)} incidents, "
                f"{campaign.seconds / 60:.0f} minutes; {replay(campaign)}"
            ),
            skipped=escape(f"Skipped, full disks: {campaign.skipped}" if campaign.skipped else ""),
            wrong=_html(("what", "stage", "times", "such as"), wrong),
            recovery=_html(("kind", "times", "p50", "p95", "max"), recovery_rows(campaign)),
            counts=_html(("", ""), list(campaign.result.get("counts", {}).items())),
            incidents=_html(("at, s", "faults", "back after, s", ""), incident_rows(campaign)),
        ),
        "utf-8",
    )
    return page


def _table(title: str, columns: Iterable[str], rows: Rows) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    for row in rows:
        table.add_row(*map(str, row))
    return table


def _html(columns: Iterable[str], rows: Rows) -> str:
    if not rows:
        return "<p>none</p>"
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(value))}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]

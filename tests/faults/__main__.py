"""`python -m tests.faults`: hurts the platform while records flow, and shows that nothing is lost and nothing twice.

The seed decides which faults strike when. Exit code 1 if anything was lost, doubled or out of order, or if the
platform did not come back in time; the report, a page too, lies in the folder of the run.
"""

import argparse
import json
import signal
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from lozenge.durations import duration
from lozenge.errors import UsageError
from lozenge_deploy.demo.sinks.extras import Extra, extras
from tests.faults import report
from tests.faults.campaign import Order, Struck, run
from tests.faults.plan import JOBS, TARGETS


def main() -> int:
    """Runs one campaign; the exit code."""
    given = _parser().parse_args()
    order = Order(
        given.seed,
        given.faults,
        given.events,
        given.rate,
        tuple(given.kinds.split(",")),
        given.together,
        duration(given.for_).total_seconds(),
        duration(given.deadline).total_seconds(),
        given.upstream,
        given.realtime,
        tuple(given.detectors.split(",")),
        extras=given.extras,
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # all that was started ends
    folder = given.folder or Path(tempfile.mkdtemp(prefix="lozenge-faults-"))
    folder.mkdir(parents=True, exist_ok=True)
    console = Console(stderr=given.output == "json", highlight=False)
    console.print(f"seed {order.seed}: {order.faults} faults, {order.records:,} raw records and more, in {folder}")

    def report_incident(struck: Struck) -> None:
        back = "NOT BACK" if struck.recovery is None else f"back after {struck.recovery:5.1f} s"
        said = "; ".join(filter(None, [*struck.said, struck.why]))
        faults = ", ".join(f"{f.after:+.1f} s {f}" if f.after else str(f) for f in struck.faults)
        console.print(f"{struck.at:6.0f} s  {back}  {faults}  {said}", soft_wrap=True)

    campaign = run(order, folder.absolute(), report_incident)
    report.show(campaign, console)
    console.print(f"the report: {report.write(campaign, folder)}")
    if given.output == "json":
        json.dump(report.as_json(campaign), sys.stdout, indent=1)
    return 0 if campaign.holds else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument(
        "--events", type=int, default=200_000, help="raw records at least, a share of them at each incident"
    )
    parser.add_argument("--rate", type=float, default=300, help="further raw records per second during the faults")
    parser.add_argument("--kinds", default=",".join(TARGETS), help="which faults, by comma")
    parser.add_argument("--together", type=int, default=1, help="so many at each incident")
    parser.add_argument("--for", dest="for_", default="24h", help="begin no incident after that time")
    parser.add_argument("--deadline", default="4m", help="in which the platform must be back")
    parser.add_argument("--upstream", choices=["exactly-once", "at-least-once"], default="exactly-once")
    parser.add_argument("--realtime", action="store_true", help="upstream and the rule in Real-Time Mode")
    parser.add_argument("--detectors", default=",".join(JOBS), help="which are deployed, by comma")
    parser.add_argument(
        "--with", dest="extras", type=_extras, default=(), help="what runs too, by comma: archive,cache,files"
    )
    parser.add_argument("--folder", type=Path, help="where everything lies; a new one by default")
    parser.add_argument("-o", "--output", choices=["table", "json"], default="table")
    return parser


def _extras(names: str) -> tuple[Extra, ...]:
    try:
        return extras(names)
    except UsageError as error:
        raise argparse.ArgumentTypeError(f"{error.message}; {error.hint}") from error


if __name__ == "__main__":
    sys.exit(main())

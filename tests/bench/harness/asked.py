"""What is requested on the command line. Whatever cannot be measured is a usage error: a sentence, and exit code 2."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path

from tests.bench.harness.row import FULL, QUICK, Plan, Row
from tests.bench.harness.system import System

OF_A_PLAN = ("rounds", "minutes", "rates", "events")


@dataclass(frozen=True)
class Asked:
    """The rows with the systems of each, and how much of it; `options` say the same of any row."""

    rows: Sequence[tuple[Row, Sequence[System]]]
    plan: Plan
    anyway: bool
    folder: Path
    options: Sequence[str]


def asked(
    rows: Mapping[str, Row], systems: Sequence[System], description: str | None, arguments: Sequence[str] | None = None
) -> Asked:
    """Reads the `arguments`, of the process if there are none given; ends it if they are wrong."""
    parser = _parser(list(rows), description)
    given = parser.parse_args(arguments)
    changed = {name: getattr(given, name) for name in OF_A_PLAN if getattr(given, name) is not None}
    plan = replace(QUICK if given.quick else FULL, **changed)
    names = given.rows or [name for name in rows if rows[name].quick or not given.quick]

    def wanted(row: Row, system: System) -> bool:
        if given.only:
            return row.fits(system) and any(word.lower() in system.name.lower() for word in given.only)
        return row.fits(system) if given.all else row.needs(system)

    found = [(rows[name], [system for system in systems if wanted(rows[name], system)]) for name in names]
    if not any(those for _, those in found):
        fitting = [system.name for system in systems if any(row.fits(system) for row, _ in found)]
        parser.error(f"--only {' '.join(given.only)}: of {', '.join(names)} there are {'; '.join(fitting)}")
    return Asked([(row, those) for row, those in found if those], plan, given.anyway, given.folder, _options(given))


def _parser(rows: Sequence[str], description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=description)
    parser.add_argument("rows", nargs="*", metavar="ROW", type=_row(rows), help=f"of {', '.join(rows)}; else all")
    parser.add_argument("--quick", action="store_true", help="a rough table: one round, one rate, small backlogs")
    parser.add_argument("--anyway", action="store_true", help="measure though other work runs; not scored")
    parser.add_argument("--all", action="store_true", help="every system; a row then takes longer than its time")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="systems with one of these words in their names")
    parser.add_argument("--rounds", type=_count, help="how often each system is measured; fewer than 5 are not scored")
    parser.add_argument("--minutes", type=_minutes, help="how long a row of latencies takes, about")
    parser.add_argument("--rates", type=_count, nargs="+", help="events a second")
    parser.add_argument("--events", type=_count, help="of a backlog")
    parser.add_argument("--folder", type=Path, default=Path("build", "bench"), help="where the reports go")
    return parser


def _options(given: argparse.Namespace) -> list[str]:
    settings = {name: value for name, value in vars(given).items() if name != "rows" and value not in (None, False)}
    values = {name: value if isinstance(value, list) else [value] for name, value in settings.items()}
    return [word for name, those in values.items() for word in (f"--{name}", *(str(v) for v in those if v is not True))]


def _row(rows: Sequence[str]) -> Callable[[str], str]:
    def known(text: str) -> str:
        if text in rows:
            return text
        raise argparse.ArgumentTypeError(f"no row is called {text!r}; there are {', '.join(rows)}")

    return known


def _count(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text):
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if minutes > 0 and isfinite(minutes):
        return minutes
    raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")

"""What makes canonical events of raw records: our upstream, a plain loop, and a Quix Streams application."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from lozenge_upstream.settings import UpstreamSettings
from tests.bench.harness.system import BACKLOG, IN_TRANSACTIONS, NORMALISE, Guarantees, Role, Start, System
from tests.bench.systems.environments import python

PROGRAMS = Path(__file__).with_name("programs")
LARGEST_BATCH = UpstreamSettings.model_fields["max_offsets"].default
SHORTEST_TRIGGER_SECONDS = 0.001
BATCHES = 10
"""Several at least, or there would be no rate to measure; none is larger than by default."""


def upstream(start: Start) -> list[str]:
    """The real process of the platform, which writes no copies by other keys."""
    variables = {
        "LOZENGE_UPSTREAM_REKEYS": "[]",
        "LOZENGE_UPSTREAM_MODE": "micro-batch",
        "LOZENGE_UPSTREAM_MAX_OFFSETS": max(1, min(LARGEST_BATCH, start.backlog // BATCHES)),
        "LOZENGE_UPSTREAM_TRIGGER_SECONDS": SHORTEST_TRIGGER_SECONDS,
    }
    given = [f"{name}={value}" for name, value in variables.items()]
    return ["env", *given, sys.executable, "-m", "lozenge_upstream"]


def loop(start: Start) -> list[str]:
    """The process, in the Python of the harness."""
    return [sys.executable, str(PROGRAMS / "loop_normalise.py"), str(start.file())]


def quix(start: Start) -> list[str]:
    """The process, in Quix's environment."""
    return [str(python("quix")), str(PROGRAMS / "quix_normalise.py"), str(start.file())]


def _system(name: str, role: Role, guarantees: Guarantees, command: Callable[[Start], Sequence[str]]) -> System:
    return System(name, role, guarantees, command, NORMALISE, BACKLOG, core=BACKLOG)


SYSTEMS = (
    _system(
        "Lozenge, upstream",
        "ours",
        Guarantees("exactly once", "every batch", writes=IN_TRANSACTIONS, state="none"),
        upstream,
    ),
    _system(
        "confluent-kafka loop, normalising",
        "peer",
        Guarantees("at least once", "every second", state="none"),
        loop,
    ),
    _system(
        "Quix Streams, normalising",
        "peer",
        Guarantees("at least once", "every 5 s, its default", state="none"),
        quix,
    ),
)

"""A peer: a plain loop of confluent-kafka and fastavro, in the Python of the harness."""

import sys
from pathlib import Path

from tests.bench.harness.system import Guarantees, Start, System

PROGRAM = Path(__file__).with_name("programs") / "loop.py"


def command(start: Start) -> list[str]:
    """The process."""
    return [sys.executable, str(PROGRAM), str(start.file())]


SYSTEMS = (
    System(
        "confluent-kafka loop",
        "peer",
        Guarantees("at least once", "every second", state="a dictionary, which a crash takes along"),
        command,
    ),
)

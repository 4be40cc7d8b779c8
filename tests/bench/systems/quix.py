"""A peer: Quix Streams, in an environment of its own."""

from pathlib import Path

from tests.bench.harness.system import Guarantees, Start, System
from tests.bench.systems.environments import python

PROGRAM = Path(__file__).with_name("programs") / "quix.py"


def command(start: Start) -> list[str]:
    """The process."""
    return [str(python("quix")), str(PROGRAM), str(start.file())]


SYSTEMS = (
    System(
        "Quix Streams",
        "peer",
        Guarantees("at least once", "every 5 s, its default", state="RocksDB and a changelog topic"),
        command,
    ),
)

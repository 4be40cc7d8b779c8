"""A peer of the whole diamond: three Quix Streams applications in a chain, in Quix's environment."""

from pathlib import Path

from tests.bench.harness.system import DIAMOND, Guarantees, Start, System
from tests.bench.systems.environments import python
from tests.bench.systems.together import together

PROGRAMS = Path(__file__).with_name("programs")


def command(start: Start) -> list[str]:
    """All three."""
    interpreter, order = str(python("quix")), str(start.file())
    stages = ("quix_normalise.py", "quix.py", "quix_notify.py")
    return together([[interpreter, str(PROGRAMS / stage), order] for stage in stages])


SYSTEMS = (
    System(
        "Quix Streams, three in a chain",
        "peer",
        Guarantees("at least once", "every 5 s, its default", state="none; a webhook may come again"),
        command,
        frozenset({"rule"}),
        DIAMOND,
    ),
)

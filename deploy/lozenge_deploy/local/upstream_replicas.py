"""How many instances of upstream run here: a file in the platform's folder, so that it holds over restarts.

The platform's process reads it and starts or stops instances. Who does what is between them and Kafka.
"""

import json
from pathlib import Path

from lozenge.process.atomic_write import replace

_FILE = "upstream.json"


def wanted_instances(folder: Path) -> int:
    """How many are wanted in the platform's `folder`; 1 if nobody has said."""
    try:
        return max(1, int(json.loads((folder / _FILE).read_text())["instances"]))
    except (OSError, ValueError, KeyError, TypeError):
        return 1


def want_instances(folder: Path, count: int) -> None:
    """Asks for `count` instances, from now on and at every later start."""
    folder.mkdir(parents=True, exist_ok=True)
    replace(folder / _FILE, json.dumps({"instances": count}))


def app_of_program(name: str) -> str:
    """The app that a program is, or is an instance of."""
    return name.partition("-")[0]


def instance_names(count: int) -> list[str]:
    """The programs that `count` instances are, the first under the app's own name."""
    return ["upstream", *(f"upstream-{number}" for number in range(2, count + 1))]

"""How many instances of upstream run here: a file in the platform's folder, so that it survives restarts.

The platform's process reads it and starts or stops instances. Kafka's group protocol assigns their partitions.
"""

import json
from pathlib import Path

from lozenge.process.atomic_write import replace

_FILE = "upstream.json"


def requested_instances(folder: Path) -> int:
    """How many are requested in the platform's `folder`; 1 by default."""
    try:
        return max(1, int(json.loads((folder / _FILE).read_text())["instances"]))
    except (OSError, ValueError, KeyError, TypeError):
        return 1


def request_instances(folder: Path, count: int) -> None:
    """Requests `count` instances, now and at every later start."""
    folder.mkdir(parents=True, exist_ok=True)
    replace(folder / _FILE, json.dumps({"instances": count}))


def app_of_program(name: str) -> str:
    """The app of a program, which may be one of its instances."""
    return name.partition("-")[0]


def instance_names(count: int) -> list[str]:
    """The programs of `count` instances; the first has the app's own name."""
    return ["upstream", *(f"upstream-{number}" for number in range(2, count + 1))]

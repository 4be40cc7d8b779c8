"""What the programs that work in steps, each of them one transaction, have in common."""

import json
import threading
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from lozenge.process.shutdown import stopped_by_signals


def tell(steps: Iterable[Any], doing: str) -> None:
    """Prints each step, a dataclass, as one JSON object; ends between two of them when it is told to."""
    stop = threading.Event()
    with stopped_by_signals(stop.set, doing):
        for step in steps:
            print(json.dumps(asdict(step)), flush=True)
            if stop.is_set():
                break

"""Lozenge: detectors between an upstream normaliser and a downstream notifier, joined by Kafka topics.

These are the names a detector's author needs; everything else is the platform's own. Each is imported
when it is first asked for, so that a command that needs none of them starts at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lozenge.currencies import money, money_column
    from lozenge.detector import Detector, Settings, Tables, alert
    from lozenge.durations import Duration
    from lozenge.folding import Fold, State, fold
    from lozenge.records import Alert, Event, Timer

__all__ = [
    "Alert",
    "Detector",
    "Duration",
    "Event",
    "Fold",
    "Settings",
    "State",
    "Tables",
    "Timer",
    "alert",
    "fold",
    "money",
    "money_column",
]

_HOME = {
    "currencies": ("money", "money_column"),
    "detector": ("Detector", "Settings", "Tables", "alert"),
    "durations": ("Duration",),
    "folding": ("Fold", "State", "fold"),
    "records": ("Alert", "Event", "Timer"),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(f"lozenge.{module}"), name)
    raise AttributeError(f"module 'lozenge' has no attribute {name!r}")

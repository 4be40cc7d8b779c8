"""Lozenge: detectors between an upstream normaliser and a downstream notifier, joined by Kafka topics.

These are the names a detector's author needs; everything else is the platform's own. Each is imported
when it is first accessed, so that a command that needs none of them starts at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lozenge.contracts.money import money, money_column
    from lozenge.detector.definition import Detector, Settings, Tables, alert
    from lozenge.detector.events import Alert, Event, Timer
    from lozenge.detector.fold import Fold, State, fold
    from lozenge.detector.tables.reference_lists import listed
    from lozenge.durations import Duration

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
    "listed",
    "money",
    "money_column",
]

_HOME = {
    "contracts.money": ("money", "money_column"),
    "detector.definition": ("Detector", "Settings", "Tables", "alert"),
    "durations": ("Duration",),
    "detector.fold": ("Fold", "State", "fold"),
    "detector.tables.reference_lists": ("listed",),
    "detector.events": ("Alert", "Event", "Timer"),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(f"lozenge.{module}"), name)
    raise AttributeError(f"module 'lozenge' has no attribute {name!r}")

"""Lozenge: detectors between an upstream normaliser and a downstream notifier, joined by Kafka topics.

These are the names a detector's author needs; everything else is the platform's own.
"""

from lozenge.currencies import money, money_column
from lozenge.detector import Detector, Settings, Tables, alert
from lozenge.durations import Duration
from lozenge.fold import Fold, State, fold
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

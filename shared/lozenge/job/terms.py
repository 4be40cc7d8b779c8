"""What a query is planned by and an order may change: the detector's settings, its trigger, its batch limit."""

from dataclasses import dataclass
from datetime import timedelta

from lozenge.detector import Settings
from lozenge.job.orders import Order
from lozenge.job.settings import detector_settings
from lozenge.loading import Loaded


@dataclass(frozen=True)
class Terms:
    """The terms in force; `max_batch` in offsets."""

    settings: Settings
    trigger: timedelta
    max_batch: int

    @classmethod
    def of(cls, loaded: Loaded, order: Order) -> "Terms":
        """What `order` makes of the declaration; raises ConfigError with every problem of its settings."""
        declared = loaded.declaration
        return cls(
            settings=detector_settings(loaded, order.settings),
            trigger=order.trigger or declared.trigger,
            max_batch=order.max_batch or declared.max_batch,
        )

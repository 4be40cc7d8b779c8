"""What a query is planned by and an order may change: the detector's settings, its trigger, its batch limit."""

from dataclasses import dataclass
from datetime import timedelta

from lozenge.detector.definition import Settings
from lozenge.detector.loader import LoadedDetector
from lozenge.errors import ConfigError
from lozenge.job.settings import detector_settings
from lozenge.protocol.job_spec import JobSpec


@dataclass(frozen=True)
class EffectiveConfig:
    """The terms in force; `max_batch` in offsets."""

    settings: Settings
    trigger: timedelta
    max_batch: int

    @classmethod
    def of(cls, loaded: LoadedDetector, order: JobSpec) -> "EffectiveConfig":
        """What `order` makes of the declaration; raises ConfigError with every problem of its settings."""
        declared = loaded.declaration
        trigger = order.trigger or declared.trigger
        if refusal := declared.refused_trigger(trigger):
            raise ConfigError(f"running {loaded.name}: {refusal}", hint="order a longer one, or none")
        return cls(
            settings=detector_settings(loaded, order.settings),
            trigger=trigger,
            max_batch=order.max_batch or declared.max_batch,
        )

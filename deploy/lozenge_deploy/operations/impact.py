"""What a candidate emits for real events before it is deployed, and its cost, compared with the live release."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lozenge_deploy.operations.deploy_plan import DeployPlan
from lozenge_deploy.releases import detector_process
from lozenge_deploy.releases.environments import environment
from lozenge_deploy.releases.release_store import Releases, environment_for

Outcome = Mapping[str, Any]
"""What `lozenge.job.tools.backtest` prints, as JSON."""


@dataclass(frozen=True)
class Impact:
    """The backtests of a candidate and of the deployed release (None: nothing is deployed)."""

    candidate: Outcome
    live: Outcome | None

    @property
    def cost(self) -> dict[str, float | None]:
        """Processor seconds per million events, `current` and `new`, and their `ratio`; None if not measured."""
        current, new = per_million(self.live), per_million(self.candidate)
        ratio = round(new / current, 2) if current and new is not None else None
        return {"current": current, "new": new, "ratio": ratio}


def estimate_impact(candidate: DeployPlan, last: str) -> Impact:
    """Backtests both on the events of `last`, one after the other, each in its own environment with its settings.

    Raises as `detector_process.backtest` and `environment` do.
    """
    name, kafka = candidate.release.detector, candidate.kafka
    new = detector_process.backtest(name, environment(candidate.built.parts), kafka, last, candidate.settings)
    if candidate.current is None or candidate.current_release is None:
        return Impact(new, None)
    python = environment_for(candidate.current_release, Releases(kafka))
    return Impact(new, detector_process.backtest(name, python, kafka, last, candidate.current.settings))


def per_million(outcome: Outcome | None) -> float | None:
    """Processor seconds per million events; None if no event was processed."""
    if not outcome or not outcome.get("processed"):
        return None
    return round(float(outcome["cpu_seconds"]) / int(outcome["processed"]) * 1e6, 1)

"""What a candidate makes of real events before it is deployed, and what that costs, beside the live release."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lozenge_deploy.operations.deploy_plan import Candidate
from lozenge_deploy.releases import detector_process
from lozenge_deploy.releases.environments import environment
from lozenge_deploy.releases.release_store import Releases, environment_for

Outcome = Mapping[str, Any]
"""What `lozenge.job.tools.backtest` told, as JSON."""


@dataclass(frozen=True)
class Impact:
    """The trials of a candidate and of the release that is deployed now (None: nothing is)."""

    candidate: Outcome
    live: Outcome | None

    @property
    def cost(self) -> dict[str, float | None]:
        """Processor seconds per million events `now` and `then`, and their `ratio`; None where nothing was measured."""
        now, then = per_million(self.live), per_million(self.candidate)
        return {"now": now, "then": then, "ratio": round(then / now, 2) if now and then is not None else None}


def prospect(candidate: Candidate, last: str) -> Impact:
    """Tries both on the events of `last`, one after the other, each in its own environment and with its settings.

    Raises as `own_code.trial` and `environment` do.
    """
    name, kafka = candidate.release.detector, candidate.kafka
    then = detector_process.trial(name, environment(candidate.built.parts), kafka, last, candidate.settings)
    if candidate.now is None or candidate.release_now is None:
        return Impact(then, None)
    python = environment_for(candidate.release_now, Releases(kafka))
    return Impact(then, detector_process.trial(name, python, kafka, last, candidate.now.settings))


def per_million(outcome: Outcome | None) -> float | None:
    """Processor seconds that a million events take; None if there were none, or a release from before this was told."""
    if not outcome or not outcome.get("judged"):
        return None
    return round(float(outcome["cpu_seconds"]) / int(outcome["judged"]) * 1e6, 1)

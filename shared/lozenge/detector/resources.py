"""What a detector's process may use, and with which of it the detector can share a JVM."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from lozenge.contracts.detector_mode import DetectorMode
from lozenge.contracts.isolation import Isolation

DEFAULT_MEMORY_MB, MOST_SHARED_MEMORY_MB, MOST_SHARED_CORES = 512, 2048, 4
"""The heap of a detector that declares none, and the most that one in a shared JVM may declare."""


class Section(BaseModel):
    """A table of a manifest: names that it does not know are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Resources(Section):
    """What the detector's process may use."""

    cores: Annotated[int, Field(ge=1, le=64)] = 1
    """Tasks that run at once; one for each input partition is enough."""

    memory_mb: Annotated[int, Field(ge=450)] = DEFAULT_MEMORY_MB
    """Largest heap of its JVM. Python, and what Arrow holds, come on top. On a Spark host a detector
    counts once for each 512 MB, or for each core if these are more."""


def refused_sharing(mode: DetectorMode, resources: Resources) -> str:
    """Why a detector in this mode cannot share a JVM if it has such resources; "" if it can."""
    if mode.holds_slots:
        return "in Real-Time Mode its tasks would keep the cores of others"
    if resources.memory_mb > MOST_SHARED_MEMORY_MB or resources.cores > MOST_SHARED_CORES:
        return (
            f"it has {resources.memory_mb} MB and cores = {resources.cores}; "
            f"one that shares has at most {MOST_SHARED_MEMORY_MB} MB and {MOST_SHARED_CORES} cores"
        )
    return ""


def isolation_with(mode: DetectorMode, resources: Resources, wanted: Isolation | None) -> Isolation:
    """Whose JVM a detector uses with such resources; `wanted` is what its manifest or an operator says."""
    own = wanted is Isolation.OWN or refused_sharing(mode, resources)
    return Isolation.OWN if own else Isolation.SHARED

"""Which detectors can share a JVM."""

from collections.abc import Mapping
from typing import Any

from lozenge.contracts.isolation import Isolation
from lozenge.errors import UsageError
from lozenge_deploy.control.records import DeploymentSpec
from lozenge_deploy.releases.release import Release


def refused(release: Release, present: DeploymentSpec, given: Mapping[str, Any]) -> UsageError | None:
    """Why a release cannot run with the resources and the isolation in `given`; None if it can."""
    declared = release.declaration
    wanted = given.get("isolation") or present.isolation or declared.isolation
    if wanted != Isolation.SHARED:
        return None
    fields = {name: given.get(name) or getattr(present, name) for name in ("cores", "memory_mb")}
    resources = declared.resources.model_copy(update={name: value for name, value in fields.items() if value})
    if not (why := declared.refused_sharing(resources)):
        return None
    return UsageError(
        f"running {release.detector} in a shared JVM: {why}",
        hint=f"`lozenge set {release.detector} --isolation own` gives it a JVM of its own",
    )

"""Which detectors can share a JVM."""

from collections.abc import Mapping
from typing import Any

from lozenge.contracts.isolation import Isolation
from lozenge.detector.resources import Resources, isolation_with, refused_sharing
from lozenge.errors import UsageError
from lozenge_deploy.control.records import DeploymentSpec
from lozenge_deploy.releases.release import Release


def isolation(release: Release, present: DeploymentSpec, given: Mapping[str, Any]) -> Isolation:
    """Whose JVM a release uses with the resources and the isolation in `given`, the others as at `present`."""
    declared = release.declaration
    wanted = given.get("isolation") or present.isolation or declared.isolation
    return isolation_with(declared.mode, _resources(release, present, given), wanted)


def refused(release: Release, present: DeploymentSpec, given: Mapping[str, Any]) -> UsageError | None:
    """Why a release cannot run with the resources and the isolation in `given`; None if it can."""
    declared = release.declaration
    wanted = given.get("isolation") or present.isolation or declared.isolation
    if wanted != Isolation.SHARED:
        return None
    if not (why := refused_sharing(declared.mode, _resources(release, present, given))):
        return None
    return UsageError(
        f"running {release.detector} in a shared JVM: {why}",
        hint=f"`lozenge set {release.detector} --isolation own` gives it a JVM of its own",
    )


def _resources(release: Release, present: DeploymentSpec, given: Mapping[str, Any]) -> Resources:
    fields = {name: given.get(name) or getattr(present, name) for name in ("cores", "memory_mb")}
    return release.declaration.resources.model_copy(update={name: value for name, value in fields.items() if value})

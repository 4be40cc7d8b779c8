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
    resources = _resources(release, present, given)
    return isolation_with(release.declaration.mode, resources, _wanted(release, present, given))


def refused(release: Release, present: DeploymentSpec, given: Mapping[str, Any]) -> UsageError | None:
    """Why a release cannot run with the resources and the isolation in `given`; None if it can."""
    if _wanted(release, present, given) != Isolation.SHARED:
        return None
    if not (why := refused_sharing(release.declaration.mode, _resources(release, present, given))):
        return None
    return UsageError(
        f"running {release.detector} in a shared JVM: {why}",
        hint=f"`lozenge set {release.detector} --isolation own` gives it a JVM of its own",
    )


def _wanted(release: Release, present: DeploymentSpec, given: Mapping[str, Any]) -> Isolation | None:
    return given.get("isolation") or present.isolation or release.declaration.isolation


def _resources(release: Release, present: DeploymentSpec, given: Mapping[str, Any]) -> Resources:
    fields = {name: given.get(name) or getattr(present, name) for name in ("cores", "memory_mb")}
    return release.declaration.resources.model_copy(update={name: value for name, value in fields.items() if value})

"""Which detectors several instances can share, and how many."""

from lozenge.errors import UsageError
from lozenge_deploy.releases.release import Release


def out_of_range(name: str, instances: int, partitions: int) -> UsageError | None:
    """Why so many instances of `name` cannot share so many partitions; None if they can."""
    if 1 <= instances <= partitions:
        return None
    return UsageError(
        f"scaling {name} to {instances} instances: it reads {partitions} partitions",
        hint=f"1 to {partitions}: an instance needs at least one partition",
    )


def refused(release: Release, instances: int, partitions: int, state: str = "keep") -> UsageError | None:
    """Why so many instances cannot run `release` with that state policy; None if they can."""
    name = release.detector
    if refusal := out_of_range(name, instances, partitions):
        return refusal
    if instances > 1 and not release.kind.fits_instances:
        return UsageError(
            f"running {name} in {instances} instances: the state of an aggregate is in one instance's checkpoint",
            hint=f"one instance can have more cores: `lozenge set {name} --cores 2`",
        )
    if instances > 1 and release.declaration.guarantee == "at-most-once":
        return UsageError(
            f"running {name} in {instances} instances: it is at-most-once, and each rebalance would skip events",
            hint="exactly-once and at-least-once detectors resume at committed offsets",
        )
    if instances > 1 and state != "keep":
        return UsageError(
            f"running {name} in {instances} instances: only one can start with the state policy {state}",
            hint=f"`lozenge scale {name} --instances 1`, then again",
        )
    return None

"""Which host a detector is placed on, and what becomes of each host: pure functions over what was seen."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from lozenge.detector.resources import DEFAULT_MEMORY_MB


@dataclass(frozen=True, slots=True)
class Limits:
    """What one host takes, and how long it serves.

    - `capacity`: the sum of the weights that it takes; see `weight_of`.
    - `age_seconds`, `placements`: from then on its detectors move to a newer one. What a JVM cannot give back, it
      keeps until it ends.
    - `start_seconds`: until it listens, or is killed.
    - `starting`: so many hosts start at once.
    - `idle_seconds`: a host that is no spare ends after so long without a detector.
    - `spare_from`, `spare_free_mb`: from so many detectors on, a spare host is kept where so much memory is free.
    - `spare_after_seconds`: it is started so long after the last detector, which needs the cores for its own start.
    - `suspect_seconds`: a second death of a host within this time makes suspects of those that were on both.
    """

    capacity: int = 20
    age_seconds: float = 7 * 86_400.0
    placements: int = 1_000
    start_seconds: float = 300.0
    starting: int = 2
    idle_seconds: float = 60.0
    spare_from: int = 4
    spare_free_mb: int = 4_096
    spare_after_seconds: float = 20.0
    suspect_seconds: float = 600.0


LIMITS = Limits()


class HostPhase(StrEnum):
    """STARTING: it does not listen yet. DRAINING: no detector is placed on it any more, and its detectors move."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


@dataclass(frozen=True, slots=True)
class HostView:
    """A host as it was seen: `detectors` are those that run on it, with their weights, `placements` all it ever had.

    `idle_seconds`: for how long it has had no detector; 0 while it has one. `awaited` are those that wait for it.
    """

    name: str
    fingerprint: str
    phase: HostPhase
    detectors: Mapping[str, int] = field(default_factory=dict)
    placements: int = 0
    age_seconds: float = 0.0
    idle_seconds: float = 0.0
    awaited: Mapping[str, int] = field(default_factory=dict)

    @property
    def load(self) -> int:
        return sum(self.detectors.values())


@dataclass(frozen=True, slots=True)
class Need:
    """What a detector needs of a host."""

    detector: str
    fingerprint: str
    weight: int = 1


def weight_of(memory_mb: int, cores: int) -> int:
    """What a detector counts for on a host, by what its process may use: 1 with the defaults."""
    return max(math.ceil(memory_mb / DEFAULT_MEMORY_MB), cores)


def place(need: Need, hosts: Sequence[HostView], suspects: Mapping[str, int], limits: Limits = LIMITS) -> str | None:
    """The host that the detector is to start on: the fullest with room, so that others can end; None if there is none.

    `suspects` are the detectors that may have ended a host, each with the neighbours that it may have. A detector that
    runs on a host already may start there once more, as its own successor.
    """
    fitting = [host for host in hosts if host.phase is HostPhase.READY and host.fingerprint == need.fingerprint]
    here = [host for host in fitting if need.detector in host.detectors]
    free = [host for host in fitting if _has_room(need, host, suspects, limits)]
    for found in (here, free):
        if found:
            return max(found, key=lambda host: (host.load, host.name)).name
    return None


def to_await(need: Need, hosts: Sequence[HostView], suspects: Mapping[str, int], limits: Limits = LIMITS) -> str | None:
    """The host that starts and will have room for the detector next to all that await it; None if there is none."""
    starting = [host for host in hosts if host.phase is HostPhase.STARTING and host.fingerprint == need.fingerprint]
    ready = [replace(host, phase=HostPhase.READY, detectors=host.awaited) for host in starting]
    return place(need, ready, suspects, limits)


def below_start_limit(hosts: Sequence[HostView], limits: Limits = LIMITS) -> bool:
    """Whether one more host may start for a detector now."""
    return sum(host.phase is HostPhase.STARTING for host in hosts) < limits.starting


def wants_spare(
    hosts: Sequence[HostView], free_mb: int, limits: Limits = LIMITS, first: str | None = None
) -> str | None:
    """The fingerprint that a spare host is to be started with; None if none is wanted.

    A spare has no detector. After the death of a host its detectors start there within a second each. `first` is the
    fingerprint of the spare that waits for the first detector; None if a detector runs.
    """
    fingerprint = first or _spare_fingerprint(hosts, limits)
    if fingerprint is None or free_mb < limits.spare_free_mb:
        return None
    is_there = any(host.fingerprint == fingerprint and _may_be_spare(host) for host in hosts)
    return None if is_there else fingerprint


def surplus(hosts: Sequence[HostView], limits: Limits = LIMITS, first: str | None = None) -> Collection[str]:
    """The hosts that are to end: without a detector for a while, or at once if they are left, but for one spare.

    `first` as in `wants_spare`.
    """
    fingerprint = first or _spare_fingerprint(hosts, limits)
    spares = [host for host in hosts if host.fingerprint == fingerprint and _may_be_spare(host)]
    spare = min(spares, key=lambda host: host.age_seconds, default=None)
    return {
        host.name
        for host in hosts
        if not host.detectors
        and host is not spare
        and host.phase is not HostPhase.STARTING
        and (host.phase is HostPhase.DRAINING or host.idle_seconds > limits.idle_seconds)
    }


def reason_to_drain(host: HostView, limits: Limits = LIMITS) -> str:
    """Why the detectors of a host are to move to a newer one; "" if they are not."""
    if host.age_seconds > limits.age_seconds:
        return f"its Spark host is {host.age_seconds / 86_400:.0f} days old"
    if host.placements >= limits.placements:
        return f"its Spark host has had {host.placements} processes"
    return ""


def _spare_fingerprint(hosts: Sequence[HostView], limits: Limits) -> str | None:
    """That of the newest host in use, once enough detectors run on hosts."""
    used = [host for host in hosts if host.detectors and host.phase is not HostPhase.DRAINING]
    if sum(len(host.detectors) for host in used) < limits.spare_from:
        return None
    return min(used, key=lambda host: host.age_seconds).fingerprint


def _may_be_spare(host: HostView) -> bool:
    return not host.detectors and host.phase is not HostPhase.DRAINING


def _has_room(need: Need, host: HostView, suspects: Mapping[str, int], limits: Limits) -> bool:
    if host.load + need.weight > limits.capacity:
        return False
    allowed = [suspects[detector] for detector in (*host.detectors, need.detector) if detector in suspects]
    return not allowed or len(host.detectors) <= min(allowed)

"""Which detectors may have ended a host: those that were there, in ever smaller groups, until one is alone."""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A detector was on a host that ended at `at`, and may have so many neighbours on the next one."""

    at: float
    neighbours: int


class Suspicions:
    """Each lasts for `seconds`. Times are Unix seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._by_detector: dict[str, Suspicion] = {}
        self._neighbours_at_end: dict[str, int] = {}

    def host_ended(self, host: str, detectors: Collection[str], now: float) -> None:
        """All of its detectors are under suspicion: at most half of them may share the next host."""
        self._neighbours_at_end[host] = max(0, len(detectors) - 1)
        for detector in detectors:
            self._by_detector[detector] = Suspicion(now, max(0, len(detectors) // 2 - 1))

    def neighbours_at_end(self, host: str) -> int | None:
        """How many other detectors a host had when it ended; None if it has not ended."""
        return self._neighbours_at_end.get(host)

    def allowed(self, now: float) -> dict[str, int]:
        """How many neighbours each detector under suspicion may have."""
        recent = now - self._seconds
        self._by_detector = {name: found for name, found in self._by_detector.items() if found.at > recent}
        return {name: found.neighbours for name, found in self._by_detector.items()}

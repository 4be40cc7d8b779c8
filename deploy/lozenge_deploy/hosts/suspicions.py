"""Which detectors may have ended hosts: those that were on several, in ever smaller groups, until one is alone."""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A detector was on a host that ended at `at`, and may have so many neighbours on the next one.

    None: as many as there are. One end of a host says nothing about the detectors that were there.
    """

    at: float
    neighbours: int | None


class Suspicions:
    """Each lasts for `seconds`. Times are Unix seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._by_detector: dict[str, Suspicion] = {}
        self._neighbours_at_end: dict[str, int] = {}

    def host_ended(self, host: str, detectors: Collection[str], now: float) -> None:
        """Of those of its detectors that were on an earlier one too, at most half may share the next host."""
        self._neighbours_at_end[host] = max(0, len(detectors) - 1)
        known = self._recent(now)
        again = {detector for detector in detectors if detector in known}
        for detector in detectors:
            neighbours = max(0, len(again) // 2 - 1) if detector in again else None
            self._by_detector[detector] = Suspicion(now, neighbours)

    def neighbours_at_end(self, host: str) -> int | None:
        """How many other detectors a host had when it ended; None if it has not ended."""
        return self._neighbours_at_end.get(host)

    def allowed(self, now: float) -> dict[str, int]:
        """How many neighbours each detector may have that was on two hosts which ended."""
        return {name: found.neighbours for name, found in self._recent(now).items() if found.neighbours is not None}

    def _recent(self, now: float) -> dict[str, Suspicion]:
        self._by_detector = {name: found for name, found in self._by_detector.items() if now - found.at < self._seconds}
        return self._by_detector

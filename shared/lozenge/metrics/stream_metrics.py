"""The parts of upstream's metrics that are about its stream: the release in force, and records that are skipped."""

from collections.abc import Mapping

from prometheus_client import Counter, Gauge


class SkippedRecords:
    """Raw records that mappings have skipped."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def count(self, source: str, counts: Mapping[str, int]) -> None:
        """Adds those of a source, by the names of its mapping's declarations; a series begins with 0."""
        for name, count in counts.items():
            self._counter.labels(source, name).inc(count)


class ReleaseInForce:
    """What is in force of a stream's release."""

    def __init__(self, mappings: Gauge, refused: Gauge) -> None:
        self._mappings, self._refused = mappings, refused

    def mappings(self, valid: Mapping[str, bool]) -> None:
        """Sets by source whether its mapping is in force; others are forgotten."""
        self._mappings.clear()
        for source, is_valid in valid.items():
            self._mappings.labels(source).set(is_valid)

    def refused(self, refused: bool) -> None:
        """Sets whether the requested release is refused."""
        self._refused.set(refused)

"""How much state a detector has, as metrics."""

from math import nan

from prometheus_client import CollectorRegistry, Gauge


class StateMetrics:
    """The state of one instance of a detector; absent until it is known, and where there is none. Thread-safe."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._rows = Gauge(
            "lozenge_state_rows", "Keys of a fold, or groups of an aggregate, with state", registry=registry
        )
        self._bytes = Gauge("lozenge_state_bytes", "Memory of the state stores of an aggregate", registry=registry)
        for each in (self._rows, self._bytes):
            each.set(nan)

    def set(self, rows: int, size: int | None) -> None:
        """Sets the keys or groups, and the bytes that they take if these are known."""
        self._rows.set(rows)
        if size is not None:
            self._bytes.set(size)

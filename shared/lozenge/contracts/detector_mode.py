"""How events are processed, and what follows from it."""

from enum import StrEnum


class DetectorMode(StrEnum):
    """MICRO_BATCH: batch by batch. REALTIME: each event when it comes, in Spark's Real-Time Mode.

    Code asks what follows from a mode. A further mode is a member with properties, and a driver of queries.
    """

    MICRO_BATCH = "micro-batch"
    REALTIME = "realtime"

    @property
    def published_ahead(self) -> bool:
        """Whether alerts are published before the offsets of their events are committed."""
        return self is DetectorMode.REALTIME

    @property
    def holds_slots(self) -> bool:
        """Whether each task of a query keeps a task slot for as long as the query runs."""
        return self is DetectorMode.REALTIME

"""The milestones of a run, such as its first notification: each has the seconds since the start of the demo."""

import time

from lozenge_deploy.observe.metrics_reader import Reading

FIRST_NOTIFICATION = "first notification"


class Milestones:
    """When the run reached what. `began` is the monotonic time of its start; `seconds` are in the order of reaching."""

    def __init__(self, began: float) -> None:
        self._began = began
        self.seconds: dict[str, float] = {}

    @property
    def elapsed(self) -> float:
        """Seconds since the demo started."""
        return time.monotonic() - self._began

    @property
    def first_notification(self) -> float | None:
        """Seconds from the start to the first webhook; None before it."""
        return self.seconds.get(FIRST_NOTIFICATION)

    def reached(self, milestone: str) -> None:
        """Records a milestone, unless it was reached before."""
        self.seconds.setdefault(milestone, round(self.elapsed, 1))

    def reported(self, app: str, reading: Reading | None) -> None:
        """Records what the newest figures of an app say about its start."""
        if reading:
            self.reached(f"{app} runs")
            if reading.records:
                self.reached(_first_batch(app))

    def has_done_a_batch(self, app: str) -> bool:
        """Whether an app has reported its first batch."""
        return _first_batch(app) in self.seconds


def _first_batch(app: str) -> str:
    return f"{app} has done a batch"

"""When a detector on a shared host gets a JVM of its own. Pure: the clock is an argument."""

from dataclasses import dataclass

TROUBLES, TROUBLE_SECONDS = 2, 3600.0
"""So much trouble within this time moves a detector, if the newest was its own."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """The end of a process on a host, at `at` in Unix seconds.

    `own` says that no other detector can be the cause: it was killed because it hung or took too much memory, or its
    host ended while no other detector was there.
    """

    at: float
    what: str
    own: bool


@dataclass(frozen=True, slots=True)
class HostTroubles:
    """The recent trouble of one detector."""

    recent: tuple[Trouble, ...] = ()

    def added(self, trouble: Trouble) -> "HostTroubles":
        """With one more, without those that are too old."""
        kept = [known for known in self.recent if trouble.at - known.at < TROUBLE_SECONDS]
        return HostTroubles((*kept, trouble))

    def reason_to_move(self) -> str:
        """Why the detector gets a JVM of its own; "" if it does not."""
        if len(self.recent) < TROUBLES or not self.recent[-1].own:
            return ""
        often = f"{len(self.recent)} times within {TROUBLE_SECONDS / 3600:.0f} h"
        return f"{often} a process of it ended on a shared host; the last one {self.recent[-1].what}"

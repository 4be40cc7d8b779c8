"""How long a notifier that died holds what its fellows could do."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """`lease_seconds` until what one instance alone does is free, `session_seconds` until its partitions are.

    Brokers allow no session below 6 seconds by default.
    """

    lease_seconds: float = 6.0
    session_seconds: float = 6.0


DEFAULT = Timing()

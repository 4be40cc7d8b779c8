"""How long the work of a notifier that died stays reserved for it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class NotifierTiming:
    """`lease_seconds` until its leases are free, `session_seconds` until the group gives its partitions to others.

    Brokers allow no session below 6 seconds by default.
    """

    lease_seconds: float = 6.0
    session_seconds: float = 6.0


DEFAULT = NotifierTiming()

"""What this notifier alone does, of all those that share its store: publish, and send to each channel."""

import time
from collections.abc import Iterable

from lozenge_downstream.store import Store

RELAY = "relay"


def lane(channel: str) -> str:
    """The lease of who sends to a channel."""
    return f"channel {channel}"


class LeaseHolder:
    """Takes every lease that is free and keeps what it has; `renew` is called by one thread, `holds` by any."""

    def __init__(self, store: Store, name: str, lease_seconds: float) -> None:
        """`name` must be no other notifier's of this store."""
        self._store, self._name = store, name
        self._lease, self._pause = lease_seconds, lease_seconds / 3
        self._until: dict[str, float] = {}
        self._renewed_at = float("-inf")

    def renew(self, leases: Iterable[str]) -> None:
        """Takes or keeps `leases`, every now and then."""
        now = time.monotonic()
        if now < self._renewed_at + self._pause:
            return
        with self._store.transaction() as t:
            held = [lease for lease in leases if t.leases.take(lease, self._name, self._lease)]
        self._renewed_at = now
        self._until = dict.fromkeys(held, now + self._lease - self._pause / 2)  # others' clocks may run ahead

    def holds(self, lease: str) -> bool:
        """Whether it is this notifier's still."""
        return time.monotonic() < self._until.get(lease, float("-inf"))

    def give_up(self) -> None:
        """Gives all back, so that another need not wait."""
        self._until = {}
        with self._store.transaction() as t:
            t.leases.give_up(self._name)

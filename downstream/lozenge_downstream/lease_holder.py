"""The leases of this notifier: of all that share a store, one publishes, and one sends to each channel."""

import time
from collections.abc import Iterable

from lozenge_downstream.store import Store

RELAY = "relay"


def channel_lease(channel: str) -> str:
    """The lease on sending to a channel."""
    return f"channel {channel}"


class LeaseHolder:
    """Takes every free lease and keeps those that it holds. One thread calls `renew`, any thread `holds`."""

    def __init__(self, store: Store, name: str, lease_seconds: float) -> None:
        """`name` must be unique among the notifiers of this store."""
        self._store, self._name = store, name
        self._lease, self._pause = lease_seconds, lease_seconds / 3
        self._until: dict[str, float] = {}
        self._renewed_at = float("-inf")

    def renew(self, leases: Iterable[str]) -> None:
        """Takes or renews `leases`, unless it has just done so."""
        now = time.monotonic()
        if now < self._renewed_at + self._pause:
            return
        with self._store.transaction() as t:
            held = [lease for lease in leases if t.leases.take(lease, self._name, self._lease)]
        self._renewed_at = now
        self._until = dict.fromkeys(held, now + self._lease - self._pause / 2)  # clocks of others may be ahead

    def holds(self, lease: str) -> bool:
        """Whether this notifier still holds it."""
        return time.monotonic() < self._until.get(lease, float("-inf"))

    def give_up(self) -> None:
        """Releases all leases, so that no other notifier waits."""
        self._until = {}
        with self._store.transaction() as t:
            t.leases.give_up(self._name)

"""What the apps have told: the newest snapshot of every instance, and what it makes of its app.

An instance is one start of one process and takes nobody's name, so an app has done what all of its instances
together have done, however many of them are gone. What is true of a moment only (lag, memory) counts
for those alive: an instance that said that it ends, or was silent for `ALIVE_SECONDS`, is not.
"""

import json
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

ALIVE_SECONDS = 15.0
HISTORY_SECONDS = 30.0
_TOTALS = ("_total", "_bucket", "_count", "_sum")

Samples = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Every sample of one instance at Unix time `time`; `ended` if there will be no other."""

    app: str
    instance: str
    release: str
    time: float
    samples: Samples
    ended: bool = False

    @classmethod
    def parse(cls, value: bytes) -> Self:
        """The snapshot in a record of the metrics topic."""
        told: dict[str, Any] = json.loads(value)
        samples = {sys.intern(name): number for name, number in told["samples"].items()}  # one copy of each name
        return cls(told["app"], told["instance"], told["release"], told["time"], samples, told.get("ended", False))


class Instance:
    """One instance, with as much of its past as rates are made of."""

    def __init__(self) -> None:
        self._recent: deque[Snapshot] = deque()

    @property
    def last(self) -> Snapshot:
        """Its newest snapshot."""
        return self._recent[-1]

    def take(self, snapshot: Snapshot) -> None:
        """Its next snapshot."""
        self._recent.append(snapshot)
        while len(self._recent) > 2 and self._recent[1].time < snapshot.time - HISTORY_SECONDS:
            self._recent.popleft()

    def alive(self, now: float) -> bool:
        """Whether it still runs, as far as anyone can tell at Unix time `now`."""
        return not self.last.ended and self.last.time >= now - ALIVE_SECONDS

    def before(self, seconds: float) -> Snapshot:
        """Its oldest snapshot of the last `seconds`, of at most `HISTORY_SECONDS`."""
        return next(snapshot for snapshot in self._recent if snapshot.time >= self.last.time - seconds)

    def since(self, total: str) -> Snapshot:
        """Its oldest snapshot of the last `HISTORY_SECONDS` in which the counter `total` had begun; else the newest."""
        return next((snapshot for snapshot in self._recent if snapshot.samples.get(total)), self.last)


class App:
    """All instances of one app. Those that are gone cost a sum, however many they are."""

    def __init__(self) -> None:
        self._instances: dict[str, Instance] = {}
        self._gone: dict[str, Samples] = {}
        self._done_by_gone: dict[str, float] = {}
        self._newest: Snapshot | None = None

    def take(self, snapshot: Snapshot) -> None:
        """The next snapshot of any instance."""
        name = snapshot.instance
        if name not in self._instances:
            self._add(self._gone.pop(name, {}), -1.0)  # it was only silent
            for other in [n for n, instance in self._instances.items() if not instance.alive(snapshot.time)]:
                self._gone[other] = self._instances.pop(other).last.samples
                self._add(self._gone[other])
            self._instances[name] = Instance()
        self._instances[name].take(snapshot)
        if self._newest is None or snapshot.time >= self._newest.time:
            self._newest = snapshot

    def _add(self, samples: Samples, sign: float = 1.0) -> None:
        for name, value in samples.items():
            if is_total(name):
                self._done_by_gone[name] = self._done_by_gone.get(name, 0.0) + sign * value

    @property
    def newest(self) -> Snapshot | None:
        """The newest snapshot of all; None before the first."""
        return self._newest

    def alive(self, now: float) -> list[Instance]:
        """Who runs at Unix time `now`."""
        return [instance for instance in self._instances.values() if instance.alive(now)]

    def samples(self, now: float) -> dict[str, float]:
        """Counters as sums over all instances that ever were, everything else over those alive at `now`."""
        found = dict(self._done_by_gone)
        for instance in self._instances.values():
            alive = instance.alive(now)
            for name, value in instance.last.samples.items():
                if alive or is_total(name):
                    found[name] = found.get(name, 0.0) + value
        return found

    def growth(self, seconds: float, now: float) -> Iterator[tuple[float, dict[str, float]]]:
        """For each instance alive, over how many of the last `seconds` is known by how much which counter grew."""
        for instance in self.alive(now):
            last, before = instance.last, instance.before(seconds)
            grown = {n: value - before.samples.get(n, 0.0) for n, value in last.samples.items() if is_total(n)}
            yield last.time - before.time, grown


def is_total(name: str) -> bool:
    """Whether the sample `name` only ever grows."""
    return name.split("{")[0].endswith(_TOTALS)

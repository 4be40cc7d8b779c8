"""The metrics of all apps: the newest snapshot of every process, summed by app.

An instance name belongs to one start of one process. The counters of an app are therefore the sums over all of its
processes, ended ones included. Gauges (lag, memory) count only the processes alive. A process is not alive after its
last snapshot, or without a snapshot for `ALIVE_SECONDS`.
"""

import sys
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Self

import msgspec

from lozenge.metrics.sample_text import is_sample

ALIVE_SECONDS = 15.0
HISTORY_SECONDS = 30.0
ENDED_SECONDS = 24 * 3600.0
"""So long an app is exported after its last process ended in order: paused or retired."""
SILENT_SECONDS = 7 * 24 * 3600.0
"""So long an app is exported after a process that ended without a word; alerts on it have to fire until then."""
_TOTALS = ("_total", "_bucket", "_count", "_sum")

Samples = Mapping[str, float]
_LARGEST = 1e18
_LAST_TIME = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


_Sample = Annotated[float, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]


class Snapshot(msgspec.Struct, frozen=True):
    """Every sample of one process at Unix time `time`; `ended` marks its last snapshot."""

    app: str
    instance: str
    release: str
    time: Annotated[float, msgspec.Meta(ge=0, le=_LAST_TIME)]
    samples: dict[str, _Sample]
    ended: bool = False

    @classmethod
    def parse(cls, key: bytes, value: bytes) -> Self:
        """The snapshot in a record of the metrics topic; raises ValueError or DecodeError if it is none."""
        found = msgspec.json.decode(value, type=cls)
        if key != f"{found.app}/{found.instance}".encode():
            raise ValueError(f"its key is {key!r}, but it is of {found.app}/{found.instance}")
        if wrong := [name for name in found.samples if not is_sample(name)]:
            raise ValueError(f"{wrong[0]!r} is no sample")
        samples = {sys.intern(name): number for name, number in found.samples.items()}  # one copy of each name
        return msgspec.structs.replace(found, samples=samples)


class ProcessMetrics:
    """The snapshots of one process, as many as rates need."""

    def __init__(self) -> None:
        self._recent: deque[Snapshot] = deque()

    @property
    def last(self) -> Snapshot:
        """Its newest snapshot."""
        return self._recent[-1]

    def take(self, snapshot: Snapshot) -> None:
        """Adds its next snapshot."""
        self._recent.append(snapshot)
        while len(self._recent) > 2 and self._recent[1].time < snapshot.time - HISTORY_SECONDS:
            self._recent.popleft()

    def alive(self, now: float) -> bool:
        """Whether it runs, as far as known at Unix time `now`."""
        return not self.last.ended and self.last.time >= now - ALIVE_SECONDS

    def before(self, seconds: float) -> Snapshot:
        """Its oldest snapshot of the last `seconds`, of at most `HISTORY_SECONDS`."""
        return next(snapshot for snapshot in self._recent if snapshot.time >= self.last.time - seconds)

    def since(self, total: str) -> Snapshot:
        """Its oldest snapshot of the last `HISTORY_SECONDS` with the counter `total` above 0; else the newest."""
        return next((snapshot for snapshot in self._recent if snapshot.samples.get(total)), self.last)


class App:
    """All processes of one app. The ended ones are kept as one sum."""

    def __init__(self) -> None:
        self._instances: dict[str, ProcessMetrics] = {}
        self._gone: dict[str, Samples] = {}
        self._done_by_gone: dict[str, float] = {}
        self._newest: Snapshot | None = None

    def take(self, snapshot: Snapshot) -> None:
        """Adds the next snapshot of any process."""
        name = snapshot.instance
        if name not in self._instances:
            self._add(self._gone.pop(name, {}), -1.0)  # it had only been silent
            for other in [n for n, instance in self._instances.items() if not instance.alive(snapshot.time)]:
                self._gone[other] = self._instances.pop(other).last.samples
                self._add(self._gone[other])
            self._instances[name] = ProcessMetrics()
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

    def alive(self, now: float) -> list[ProcessMetrics]:
        """The processes alive at Unix time `now`."""
        return [instance for instance in self._instances.values() if instance.alive(now)]

    def expired(self, now: float) -> bool:
        """Whether nothing of it ran for so long that nobody looks for it; its counters continue if it runs again."""
        kept = max((ENDED_SECONDS if i.last.ended else SILENT_SECONDS for i in self._instances.values()), default=0.0)
        return self._newest is not None and self._newest.time < now - kept

    def samples(self, now: float) -> dict[str, float]:
        """Counters as sums over all processes ever, everything else over those alive at `now`."""
        found = dict(self._done_by_gone)
        for instance in self._instances.values():
            alive = instance.alive(now)
            for name, value in instance.last.samples.items():
                if alive or is_total(name):
                    found[name] = found.get(name, 0.0) + value
        return found

    def growth(self, seconds: float, now: float) -> Iterator[tuple[float, dict[str, float]]]:
        """For each process alive: the observed part of the last `seconds`, and the growth of each counter in it."""
        for instance in self.alive(now):
            last, before = instance.last, instance.before(seconds)
            grown = {n: value - before.samples.get(n, 0.0) for n, value in last.samples.items() if is_total(n)}
            yield last.time - before.time, grown


def is_total(name: str) -> bool:
    """Whether the sample `name` only ever grows."""
    return name.split("{")[0].endswith(_TOTALS)

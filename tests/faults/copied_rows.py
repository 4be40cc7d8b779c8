"""How fast rows were copied, and how soon after a kill, by the times of their records. Pure."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple


class Phase(NamedTuple):
    """From `begin` to `end`, in Unix seconds, so many rows a second were `requested`; 0 is no limit."""

    requested: float
    begin: float
    end: float


class Kill(NamedTuple):
    """An instance that was copying `files` was killed, at Unix time."""

    at: float
    files: Collection[str]


class CopiedRows:
    """Takes the rows of a source, in any order. `phases` do not overlap, and come in their order."""

    def __init__(self, phases: Sequence[Phase], kills: Iterable[Kill]) -> None:
        self._phases = phases
        self._begins = [phase.begin for phase in phases]
        self._rows, self._last = [0] * len(phases), [phase.begin for phase in phases]
        self._first: dict[tuple[str, float], float | None] = {(file, k.at): None for k in kills for file in k.files}
        self._kills: dict[str, list[float]] = {}
        for file, at in self._first:
            self._kills.setdefault(file, []).append(at)

    def take(self, file: str, at: float) -> None:
        """Counts a row of `file`, written at Unix time `at`."""
        number = bisect_right(self._begins, at) - 1
        if number >= 0 and at < self._phases[number].end:
            self._rows[number] += 1
            self._last[number] = max(at, self._last[number])
        for kill in self._kills.get(file, ()):
            first = self._first[file, kill]
            if at > kill and (first is None or at < first):
                self._first[file, kill] = at

    def speeds(self) -> list[float]:
        """Rows a second of each phase: until its end, or without a limit until its last row."""
        ends = [phase.end if phase.requested else last for phase, last in zip(self._phases, self._last, strict=True)]
        lasted = [end - begin for begin, end in zip(self._begins, ends, strict=True)]
        return [rows / seconds if seconds else 0.0 for rows, seconds in zip(self._rows, lasted, strict=True)]

    def resumed(self) -> list[float]:
        """Seconds from each kill to the first row of each of its files, but for those that had no more rows."""
        return sorted(first - kill for (_, kill), first in self._first.items() if first is not None)

"""How fast rows are copied: a rate that may change between two pieces."""

from collections.abc import Callable


class RowRate:
    """A piece of `size` rows is followed by the wait that makes them `rate()` rows a second; 0 is no limit."""

    def __init__(self, rate: Callable[[], float], most: int, clock: Callable[[], float]) -> None:
        self._rate, self._most, self._clock = rate, most, clock
        self._began = clock()

    def size(self) -> int:
        """The number of rows of the next piece, which begins now: what a second has, at most."""
        self._began = self._clock()
        rate = self._rate()
        return self._most if rate <= 0 else max(1, min(self._most, int(rate)))

    def seconds_left(self, rows: int) -> float:
        """How long to wait still after `rows` rows since the piece began, by the rate of now."""
        rate = self._rate()
        return 0.0 if rate <= 0 else max(0.0, self._began + rows / rate - self._clock())

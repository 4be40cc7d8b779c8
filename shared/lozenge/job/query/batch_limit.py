"""How many offsets a batch may span."""

GROWS_AFTER = 100
"""Good batches in a row after which a halved limit is doubled. Each change plans the query again."""


class BatchLimit:
    """At most what is declared, less after a batch too large for the driver."""

    def __init__(self, declared: int) -> None:
        self.value = self._declared = declared
        self._good = 0

    def succeeded(self) -> None:
        """A batch was committed."""
        self._good += 1

    def shrink(self) -> bool:
        """Halves the limit; False if a batch of one offset was too large already."""
        self._good = 0
        if self.value == 1:
            return False
        self.value //= 2
        return True

    def grow(self) -> bool:
        """Doubles a halved limit after enough good batches; whether it did."""
        if self.value == self._declared or self._good < GROWS_AFTER:
            return False
        self._good = 0
        self.value = min(self.value * 2, self._declared)
        return True

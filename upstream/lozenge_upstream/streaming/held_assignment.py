"""The partitions that an instance holds, between the group protocol, which takes them, and the instance's work."""

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Assignment:
    """The partitions that one generation of the group assigned; `generation` is Java's group metadata."""

    partitions: Mapping[str, Collection[int]]
    generation: Any


class HeldAssignment:
    """The newest assignment, None if there is none. The group's thread calls `take`, `revoke` and `fail`."""

    def __init__(self) -> None:
        self._assignment: Assignment | None = None
        self._working = threading.Lock()
        self._failure: Exception | None = None

    @contextmanager
    def holding(self) -> Iterator[Assignment | None]:
        """The assignment. No other instance gets it within the block.

        So the block has to end soon after `is_revoked`. Raises the error that ended the membership, if any.
        """
        with self._working:
            if self._failure is not None:
                raise self._failure
            yield self._assignment

    def is_revoked(self, assignment: Assignment) -> bool:
        """Whether the group revokes `assignment`, or has revoked it."""
        return self._assignment is not assignment

    def take(self, assignment: Assignment | None) -> None:
        """Takes the assignment of a new generation."""
        self._assignment = assignment

    def revoke(self) -> None:
        """Returns when no block holds the assignment any more."""
        self._assignment = None
        with self._working:
            pass

    def fail(self, error: Exception) -> None:
        """Ends the assignment at once: `holding` raises `error` from now on."""
        self._failure = error
        self._assignment = None

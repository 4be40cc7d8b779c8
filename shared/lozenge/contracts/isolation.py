"""Whose JVM a detector's Spark is in."""

from enum import StrEnum


class Isolation(StrEnum):
    """OWN: a JVM of its own. SHARED: that of a Spark host, with other detectors. Its Python process is its own."""

    OWN = "own"
    SHARED = "shared"

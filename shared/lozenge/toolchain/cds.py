"""Class-data sharing: what Spark's JVM loads at a start, kept ready in one file."""

from pathlib import Path

LOGGING = Path(__file__).with_name("log4j2.properties")


def options() -> list[str]:
    """JVM options that use the archive; none if there is no archive for exactly this class path."""
    return []

"""Where the tables of an archive are, and how large their files."""

from pathlib import Path

ARCHIVE_VARIABLE = "LOZENGE_ARCHIVE"
DEFAULT_ARCHIVE = Path(".lozenge", "archive")
MEGABYTE = 1024 * 1024

"""Where the tables of an archive are, and how large their files."""

from pathlib import Path

ARCHIVE_VARIABLE = "LOZENGE_ARCHIVE"
DEFAULT_ARCHIVE = Path(".lozenge", "archive")
MEGABYTE = 1024 * 1024
FILE_MB = 256
"""Of a merged file: readers work best on 128 to 512 MB."""

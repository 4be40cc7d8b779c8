"""The version of what a compacted topic holds: of a reference list, or of a table of the platform."""

import hashlib
import re
from collections.abc import Iterable


def version(changed: int, records: Iterable[bytes]) -> str:
    """The version of a topic after the records before offset `changed`: "137-9f31c2d4ab01".

    The second part is a digest of the live `records`, in the order of their keys. So a reader knows whether the
    content of that offset is still the same.
    """
    digest = hashlib.sha256()
    for record in records:
        digest.update(record + b"\n")
    return f"{changed}-{digest.hexdigest()[:12]}"


def changed_of(version: str) -> int:
    """The offset of a version: the content is what the records before it say. Raises ValueError for another text."""
    if not re.fullmatch(r"[0-9]{1,19}-[0-9a-f]{12}", version):
        raise ValueError(f"{version!r} is no version of a list or a table")
    return int(version.partition("-")[0])

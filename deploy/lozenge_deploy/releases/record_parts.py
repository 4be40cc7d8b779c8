"""Values that are too large for one record, as several records of one transaction."""

import hashlib
import re
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, ValidationError

PART_BYTES = 900_000
"""Bytes of the largest record: the broker's usual limit is a million."""
_PART = re.compile(r".+/part/[0-9]+")


class _Head(BaseModel):
    """The value at the key of a value that is in parts."""

    model_config = ConfigDict(extra="forbid")

    parts: int
    sha256: str


def split(key: str, value: bytes) -> dict[str, bytes]:
    """The records by key: the value itself if it is small enough, or its parts and then a head that counts them."""
    if len(value) <= PART_BYTES:
        return {key: value}
    starts = range(0, len(value), PART_BYTES)
    parts = {_part(key, number): value[start : start + PART_BYTES] for number, start in enumerate(starts)}
    return parts | {key: _Head(parts=len(parts), sha256=_sha256(value)).model_dump_json().encode()}


def is_of_parts(key: str, value: bytes) -> bool:
    """Whether the record is a part or a head, and so no value by itself."""
    return _PART.fullmatch(key) is not None or _head(value) is not None


def joined(records: Mapping[str, bytes]) -> dict[str, bytes]:
    """The values by key, of records that `split` has made. A value whose parts are not all there is dropped."""
    values = {}
    for key, value in records.items():
        if _PART.fullmatch(key):
            continue
        if (head := _head(value)) is not None:
            value = b"".join(records.get(_part(key, number), b"") for number in range(head.parts))
            if _sha256(value) != head.sha256:
                continue
        values[key] = value
    return values


def _part(key: str, number: int) -> str:
    return f"{key}/part/{number}"


def _head(value: bytes) -> _Head | None:
    try:
        return _Head.model_validate_json(value) if value.startswith(b'{"parts":') else None
    except ValidationError:
        return None


def _sha256(value: bytes) -> str:
    return hashlib.sha256(value).hexdigest()

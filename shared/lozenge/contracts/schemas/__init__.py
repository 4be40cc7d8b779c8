"""The Avro schemas of the contracts and the ids under which they travel.

The `.avsc` files here are the truth. `lock.json` gives each version its id; versions are only ever
added, and each must be FULL_TRANSITIVE-compatible with all before it. A writer announces its ids in the
compacted topic `lozenge.ctl.schemas.v1`, so a running job needs no newer file.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from lozenge.errors import SchemaError


@dataclass(frozen=True, slots=True)
class Schema:
    """One version of one contract: `text` is the Avro schema as JSON, `id` its number on the wire."""

    id: int
    name: str
    version: int
    text: str

    @property
    def definition(self) -> dict[str, Any]:
        """The schema as fastavro takes it."""
        parsed: dict[str, Any] = json.loads(self.text)
        return parsed


@cache
def packaged() -> tuple[Schema, ...]:
    """Every schema version in this package, by id; raises SchemaError if a locked file was edited."""
    folder = resources.files(__package__)
    found = []
    for row in json.loads((folder / "lock.json").read_text("utf-8")):
        file = f"{row['name']}.v{row['version']}.avsc"
        text = (folder / file).read_text("utf-8")
        if hashlib.sha256(text.encode()).hexdigest() != row["sha256"]:
            raise SchemaError(
                f"reading schema {file}: it differs from its locked checksum",
                hint="a published schema never changes; add a new version next to it and to lock.json",
            )
        found.append(Schema(row["id"], row["name"], row["version"], text))
    return tuple(found)


def newest(name: str) -> Schema:
    """The version of `name` ("event", "alert", "notification", "feedback") that this release writes and reads into."""
    return max((s for s in packaged() if s.name == name), key=lambda s: s.version)

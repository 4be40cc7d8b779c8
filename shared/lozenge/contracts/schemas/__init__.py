"""The Avro schemas of the contracts and the ids under which they travel.

The `.avsc` files here are the truth. `lock.json` gives each version its id, unless a process was given others by
`assign_ids`: those of a schema registry. Versions are only ever added, and each must be FULL_TRANSITIVE-compatible
with all before it. A writer announces its ids in the compacted topic `lozenge.ctl.schemas.v1`, so a running job needs
no newer file.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
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

    @property
    def record_name(self) -> str:
        """The full name of its record, as "lozenge.Alert"."""
        return f"{self.definition['namespace']}.{self.definition['name']}"

    def with_id(self, id: int) -> "Schema":
        """The same version under another id."""
        return replace(self, id=id)


_assigned: dict[tuple[str, int], int] = {}


def assign_ids(ids: Mapping[tuple[str, int], int]) -> None:
    """From now on this process uses these ids, by name and version; call it before any record is written or read."""
    _assigned.update(ids)


def packaged() -> tuple[Schema, ...]:
    """Every schema version in this package with its id; raises SchemaError if a locked file was edited.

    Those with an assigned id come last: no record has the id that the lock file gives to another one.
    """
    found = [schema.with_id(_assigned.get((schema.name, schema.version), schema.id)) for schema in locked()]
    return tuple(sorted(found, key=lambda schema: (schema.name, schema.version) in _assigned))


@cache
def locked() -> tuple[Schema, ...]:
    """Every schema version in this package with its id in `lock.json`; raises as `packaged` does."""
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

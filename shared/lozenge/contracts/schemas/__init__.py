"""The Avro schemas of the contracts and the ids under which they travel.

The `.avsc` files here are the truth; those of events are in the folders of streams. `lock.json` gives each version its
id, and `derived_id` that of an event schema, unless a process was given others by `assign_ids`: those of a registry.
Versions are only ever added, and each must be FULL_TRANSITIVE-compatible with all before it. A writer announces its ids
in the compacted topic `lozenge.ctl.schemas.v1`, so a running job needs no newer file.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from lozenge.errors import SchemaError


class Leaf(NamedTuple):
    """The type of a value: its logical type, or else its Avro type; precision and scale of a decimal, else 0."""

    name: str
    precision: int = 0
    scale: int = 0


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

    @property
    def identity(self) -> tuple[str, int, str]:
        """Name, version and content: an event schema gains fields within a version, and each content has its own id."""
        return self.name, self.version, _content(self.text)

    @property
    def leaves(self) -> dict[str, Leaf]:
        """The type of each field that is no record, by its path ("raw.timestamp"); optional or not."""
        return dict(_leaves(self.definition, ""))

    def with_id(self, id: int) -> "Schema":
        """The same version under another id."""
        return replace(self, id=id)


@cache
def _content(text: str) -> str:
    """A digest of what a schema says, however its text is written; views need it with every record."""
    return hashlib.sha256(json.dumps(json.loads(text), sort_keys=True).encode()).hexdigest()


def _leaves(record: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Leaf]]:
    for field in record["fields"]:
        path, kind = f"{prefix}{field['name']}", field["type"]
        if isinstance(kind, list):
            kind = next((each for each in kind if each != "null"), "null")
        plain: Mapping[str, Any] = {"type": kind} if isinstance(kind, str) else kind
        if plain["type"] == "record":
            yield from _leaves(plain, f"{path}.")
        else:
            name = plain.get("logicalType", plain["type"])
            yield path, Leaf(name, plain.get("precision", 0), plain.get("scale", 0))


_DERIVED_BITS = 30
_assigned: dict[tuple[str, int, str], int] = {}


def assign_ids(ids: Mapping[tuple[str, int, str], int]) -> None:
    """From now on this process uses these ids, by identity; call it before any such record is written or read."""
    _assigned.update(ids)


def derived_id(text: str) -> int:
    """The id of a schema that no lock file has: equal texts have one, and it is none of a lock file or a registry.

    Those count from 1; this one lies between 2^30 and 2^31.
    """
    digest = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    return (1 << _DERIVED_BITS) + digest % (1 << _DERIVED_BITS)


def settled(schema: Schema) -> Schema:
    """The schema with the id that this process was given for it, or else its own."""
    return schema.with_id(_assigned.get(schema.identity, schema.id))


def packaged() -> tuple[Schema, ...]:
    """Every schema version in this package with its id; raises SchemaError if a locked file was edited.

    Those with an assigned id come last: no record has the id that the lock file gives to another one.
    """
    found = [settled(schema) for schema in locked()]
    return tuple(sorted(found, key=lambda schema: schema.identity in _assigned))


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
    """The version of `name` ("alert", "notification", "feedback") that this release writes and reads into."""
    return max((s for s in packaged() if s.name == name), key=lambda s: s.version)

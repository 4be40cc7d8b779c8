"""The platform's schemas as a registry imports them: subject, version, id and text, so that ids stay what they are.

Two forms: requests for the import mode of a registry with the Confluent API, and the archive that Apicurio imports.
Apicurio's Confluent API assigns ids of its own whatever a request says, so it needs the archive.
"""

import hashlib
import json
import zipfile
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from lozenge.contracts.schemas import Schema
from lozenge.kafka.schema_registry import COMPATIBILITY

_SYSTEM = {
    "systemName": "Lozenge",
    "systemVersion": "3.0.9",
    "exportVersion": "3.0",
    "exportedBy": "",
    "dbVersion": "101",
}


def import_requests(schemas: Iterable[Schema]) -> list[dict[str, Any]]:
    """One body for `POST /subjects/SUBJECT/versions` per schema, in the order in which they go in."""
    return [
        {
            "subject": schema.record_name,
            "version": schema.version,
            "id": schema.id,
            "schemaType": "AVRO",
            "schema": schema.text,
        }
        for schema in schemas
    ]


def write_apicurio_archive(schemas: Sequence[Schema], file: Path) -> None:
    """Writes the archive for `POST /apis/registry/v3/admin/import` to `file`."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(name: str, value: dict[str, Any]) -> None:
            archive.writestr(name, json.dumps(value))

        add("manifest-lozenge.Manifest.json", _SYSTEM)
        for schema in schemas:
            digest = hashlib.sha256(schema.text.encode()).hexdigest()
            content = {"contentId": schema.id, "contentHash": digest, "canonicalHash": digest}
            add(f"content/{digest}.Content.json", {**content, "contentType": "application/json"})
            archive.writestr(f"content/{digest}.Content.data", schema.text)
        ordered = sorted(schemas, key=lambda schema: (schema.record_name, schema.version))
        for subject, versions in groupby(ordered, key=lambda schema: schema.record_name):
            _add_artifact(add, subject, list(versions))


def _add_artifact(add: Any, subject: str, versions: Sequence[Schema]) -> None:
    folder, artifact = f"groups/default/artifacts/{subject}", {"groupId": None, "artifactId": subject}
    people = {"owner": "", "modifiedBy": "", "createdOn": 0, "modifiedOn": 0}
    add(f"{folder}/MetaData.Artifact.json", {**artifact, **people, "artifactType": "AVRO"})
    for schema in versions:
        version = {"version": str(schema.version), "versionOrder": schema.version, "state": "ENABLED"}
        ids = {"globalId": schema.id, "contentId": schema.id}
        add(f"{folder}/versions/{schema.version}.ArtifactVersion.json", {**artifact, **people, **version, **ids})
    names = [str(schema.version) for schema in versions]
    branch = {"branchId": "latest", "systemDefined": True, "versions": names}
    add(f"{folder}/branches/latest.Branch.json", {**artifact, **people, **branch})
    rule = {"type": "COMPATIBILITY", "configuration": COMPATIBILITY}
    add(f"{folder}/rules/COMPATIBILITY.ArtifactRule.json", {**artifact, **rule})

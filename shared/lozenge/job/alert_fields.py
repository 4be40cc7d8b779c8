"""The fields of an alert's record and of its headers, for both encoders.

`commit.alert_encoder` fills them in Python, `query.alert_columns` with columns of Spark.
"""

from collections.abc import Mapping
from typing import NamedTuple

from lozenge.detector.manifest import Manifest
from lozenge.job.identity import Identity
from lozenge.protocol.coverage import Versions


class Source(NamedTuple):
    """Where a value comes from: from the alert's `column`, or from the `constant` if that is blank or there is none."""

    column: str = ""
    constant: str | Mapping[str, str] | None = None


Fields = Mapping[str, Source | Mapping[str, Source]]


def record_fields(identity: Identity, manifest: Manifest, versions: Versions) -> Fields:
    """The fields of the schema `alert`, in its order."""
    return {
        "alert_id": Source("alert_id"),
        "detector": Source(constant=identity.detector),
        "release": Source(constant=identity.release),
        "settings_digest": Source(constant=versions.settings),
        "model_version": Source(),
        "entity": {"type": Source(constant=identity.key), "id": Source("entity")},
        "severity": Source("severity", manifest.severity),
        "score": Source("score"),
        "title": Source("title", manifest.title),
        "reason": Source("reason"),
        "evidence": {"event_ids": Source("evidence"), "values": Source("values")},
        "event_time": Source("event_time"),
        "trigger": Source("trigger"),
        "detected_at": Source("detected_at"),
        "labels": Source("labels"),
        "table_versions": Source(constant=versions.tables),
    }


def source_of(identity: Identity) -> str:
    """The CloudEvents source of its alerts."""
    return f"/detectors/{identity.detector}"

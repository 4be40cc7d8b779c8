"""What a release is as a record; the topic and real environments are in tests/integration."""

from datetime import UTC, datetime
from typing import Any

from lozenge.contracts.detector_kind import DetectorKind
from lozenge.detector.manifest import Manifest
from lozenge_deploy.releases.build import Wheel
from lozenge_deploy.releases.release import Release

LOCK = "toposort==1.10 \\\n    --hash=sha256:ab\n" * 1000


def release(**given: Any) -> Release:
    fields: dict[str, Any] = {
        "detector": "spotter",
        "version": "1.0.0",
        "declaration": Manifest(kind=DetectorKind.RULE, owner="me", title="Spotted"),
        "settings": {"within": "10m"},
        "settings_digest": "aa",
        "settings_schema": {"properties": {}},
        "state_shape": None,
        "schemas": [1, 2],
        "number": 7,
        "digest": "0123456789ab",
        "made_at": datetime(2026, 11, 21, 12, tzinfo=UTC),
        "made_by": "you",
        "python": "3.11",
        "library": "ba9876543210",
        "wheel": Wheel(file="spotter-1.0.0-py3-none-any.whl", content=bytes(range(256))),
        "lock": LOCK,
    }
    return Release(**fields | given)


def test_a_release_survives_as_a_record() -> None:
    before = release()
    text = before.model_dump_json()
    assert Release.model_validate_json(text) == before
    assert release().model_dump_json() == text
    assert (before.name, before.kind) == ("r7", "rule")


def test_the_lock_of_a_release_is_compressed() -> None:
    assert len(release().model_dump_json()) < len(LOCK) / 10


def test_unknown_fields_of_a_newer_tool_are_ignored() -> None:
    text = release().model_dump_json()
    assert Release.model_validate_json(text.replace("{", '{"colour": "blue", ', 1)) == release()

"""What a release is as a record; the topic and real environments are in tests/integration."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lozenge.contracts.detector_kind import DetectorKind
from lozenge.detector.manifest import Manifest
from lozenge.errors import DetectorError
from lozenge_deploy.releases import detector_process
from lozenge_deploy.releases.build import Wheel
from lozenge_deploy.releases.release import Release, described
from tests.streams import AUTH

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
        "stream": AUTH,
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
    assert len(release().model_dump(mode="json")["lock"]) < len(LOCK) / 10


def test_unknown_fields_of_a_newer_tool_are_ignored() -> None:
    text = release().model_dump_json()
    assert Release.model_validate_json(text.replace("{", '{"colour": "blue", ', 1)) == release()


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 0", "describing spotter: its process has ended without a description"),
        ("echo hello", "describing spotter: its process has ended without a description"),
        ("sleep 60", "describing spotter: its module has not been imported within 0.2 s"),
        ("printf '\\377 no' >&2; exit 1", "describing spotter: \ufffd no"),
    ],
)
def test_a_process_that_gives_no_description_is_an_error_and_nothing_is_kept(
    script: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detector_process, "DESCRIBE_SECONDS", 0.2 if "sleep" in script else 60)
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    parts: Any = SimpleNamespace(detector="spotter")
    with pytest.raises(DetectorError) as raised:
        described(parts, python)
    assert str(raised.value).startswith(why)
    assert not (tmp_path / "description.json").exists()

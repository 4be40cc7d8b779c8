"""What another release changes, row by row."""

import io
import zipfile
from datetime import timedelta
from typing import Any

from lozenge.contracts.detector_kind import DetectorKind
from lozenge.detector.manifest import Manifest
from lozenge.detector.resources import Resources
from lozenge_deploy.operations.release_diff import differences, settings_rows
from lozenge_deploy.releases.build import Wheel
from lozenge_deploy.releases.release import Release
from tests.deploy.releases.test_release import release


def wheel(**files: str) -> Wheel:
    """A wheel of modules with its packaging metadata."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"spotter/{name}.py", text)
        archive.writestr("spotter-1.0.0.dist-info/RECORD", str(files))
    return Wheel(file="spotter-1.0.0-py3-none-any.whl", content=content.getvalue())


def rows_of(old: Release | None, **changed: Any) -> list[tuple[str, Any, Any]]:
    new = release(number=8, digest="ffff", wheel=wheel(spotter="a\nb\n"), lock="x==1.0 \\\n    --hash=sha256:1\n")
    return [tuple(row.values()) for row in differences(old, new.model_copy(update=changed))]


def before() -> Release:
    return release(wheel=wheel(spotter="a\nb\n"), lock="x==1.0 \\\n    --hash=sha256:1\n")


def test_without_a_previous_release_there_is_only_its_name() -> None:
    assert rows_of(None) == [("release", None, "r8")]


def test_the_same_contents_are_the_same_release() -> None:
    assert rows_of(before(), digest=before().digest, number=7, settings={"never": "looked at"}) == [
        ("release", "r7", "r7")
    ]


def test_the_lines_of_each_file_are_counted_without_packaging_metadata() -> None:
    changed = wheel(spotter="a\nc\nd\n", helper="e\n")
    assert rows_of(before(), wheel=changed)[1:] == [
        ("helper.py", "-0 lines", "+1 lines"),
        ("spotter.py", "-1 lines", "+2 lines"),
    ]


def test_defaults_dependencies_and_the_platform_are_named() -> None:
    lock = "x==1.1 \\\n    --hash=sha256:2\ny==3.0\n"
    assert rows_of(before(), settings={"within": "20m"}, lock=lock, library="cc")[1:] == [
        ("default of within", "10m", "20m"),
        ("x", "1.0", "1.1"),
        ("y", None, "3.0"),
        ("library", "ba9876543210", "cc"),
    ]


def test_declared_values_are_named_as_in_the_declaration() -> None:
    declared = Manifest(
        kind=DetectorKind.RULE, owner="me", title="Spotted", trigger=timedelta(seconds=2), resources=Resources(cores=2)
    )
    assert rows_of(before(), declaration=declared)[1:] == [
        ("declared resources.cores", 1, 2),
        ("declared trigger", "1s", "2s"),
    ]


def test_a_setting_that_returns_to_its_default_is_a_row() -> None:
    rows = settings_rows({"limit": 3, "within": "5m"}, {"limit": 3, "until": 4})
    assert [tuple(row.values()) for row in rows] == [("setting until", None, 4), ("setting within", "5m", None)]

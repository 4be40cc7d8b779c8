"""Folders of detectors that tests deploy."""

from pathlib import Path

from lozenge_deploy.cli.author.scaffold import write
from tests.streams import AUTH


def quick_detector(checkout: Path, name: str, kind: str) -> Path:
    """A new detector of `kind`, in a new `checkout`, whose own tests take no time."""
    (checkout / "detectors").mkdir()
    (checkout / "pyproject.toml").touch()
    write(checkout / "detectors", name, kind, "tests", AUTH)
    made = checkout / "detectors" / name
    write_quick_tests(made)
    return made


def write_quick_tests(folder: Path) -> None:
    """Replaces the tests of a detector by those that it must have, which look at nothing but its module."""
    name = folder.name
    kinds = ("fires", "stays_silent", "a_missing_field", "gives_the_same")
    tests = "".join(f"def test_{kind}() -> None:\n    assert module.detector\n" for kind in kinds)
    (folder / f"test_{name}.py").write_text(f"from {name} import {name} as module\n\n\n{tests}")

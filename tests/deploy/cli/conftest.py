"""A checkout, and detectors in it."""

from pathlib import Path

import pytest

from lozenge_deploy.cli.author.scaffold import write


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "detectors").mkdir()
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


def made(checkout: Path, name: str, kind: str = "rule") -> None:
    """A detector as `lozenge new` writes it."""
    write(checkout / "detectors", name, kind, "tests")

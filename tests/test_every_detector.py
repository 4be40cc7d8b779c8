"""Every detector folder satisfies the same conditions. What each finds is tested in its own folder."""

from pathlib import Path

import pytest

from lozenge_deploy.releases.lint.folder import problems

DETECTORS = Path(__file__).parents[1] / "detectors"


@pytest.mark.parametrize("folder", sorted(f.parent for f in DETECTORS.glob("*/pyproject.toml")), ids=lambda f: f.name)
def test_the_folder_is_complete(folder: Path) -> None:
    assert problems(folder) == []

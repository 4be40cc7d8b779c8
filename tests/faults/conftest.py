"""The detectors of a campaign have tests that evaluate them on Spark."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent / "detectors" in item.path.parents:
            item.add_marker(pytest.mark.integration)

"""A folder says whether its broker was killed."""

from pathlib import Path

import pytest

from lozenge_deploy.local.broker_session import was_killed


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param([], False, id="no folder"),
        pytest.param(["meta.properties"], False, id="formatted only"),
        pytest.param(["meta.properties", "__cluster_metadata-0/0.log"], True, id="killed"),
        pytest.param(["meta.properties", "__cluster_metadata-0/0.log", ".kafka_cleanshutdown"], False, id="stopped"),
    ],
)
def test_a_broker_was_killed_if_it_ran_and_was_not_stopped_in_order(
    tmp_path: Path, files: list[str], expected: bool
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert was_killed(tmp_path) is expected

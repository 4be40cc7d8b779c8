from pathlib import Path

import pytest

from lozenge.errors import ConfigError, UsageError
from lozenge.streams.project import STREAMS_VARIABLE
from lozenge_deploy.operations.tables.requested import requested_tables
from tests.tables import DATABASE, table_folder


def test_what_is_wrong_with_a_requested_table_is_said_before_its_loader_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = tmp_path / "upstream" / "streams"
    streams.mkdir(parents=True)
    monkeypatch.setenv(STREAMS_VARIABLE, str(streams))
    table_folder(tmp_path, "limits", DATABASE.format(source="postgresql+psycopg://app:${LIMITS_PASSWORD}@db/app"))
    with pytest.raises(ConfigError, match="LIMITS_PASSWORD is not set"):
        requested_tables(["limits"])
    monkeypatch.setenv("LIMITS_PASSWORD", "x")
    assert requested_tables(["limits", "limits"]) == ["limits"]
    with pytest.raises(UsageError, match="there are limits"):
        requested_tables(["others"])
    assert requested_tables(None) is None

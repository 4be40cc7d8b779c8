from pathlib import Path

import pytest

from lozenge.errors import ConfigError, UsageError
from lozenge.platform_tables.project import names_in, read_table, table_named
from tests.tables import DATABASE, table_folder


def test_the_tables_of_a_project_are_folders(tmp_path: Path) -> None:
    text = DATABASE.format(source="sqlite:////data/limits.db")
    folder = table_folder(tmp_path, "limits", text)
    table_folder(tmp_path, "broken", "title =")
    assert names_in(tmp_path) == ["broken", "limits"]
    assert table_named(tmp_path, "limits") == read_table(folder)
    with pytest.raises(UsageError, match="there are broken, limits"):
        table_named(tmp_path, "limit")
    with pytest.raises(ConfigError, match="not TOML"):
        table_named(tmp_path, "broken")
    with pytest.raises(ConfigError, match="No such file"):
        read_table(tmp_path)

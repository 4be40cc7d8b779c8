"""The store's schema: an empty database is brought to head, and head is what the code says."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sql
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, event

import lozenge_downstream.store
from lozenge.errors import Fatal
from lozenge_downstream.store import Store
from lozenge_downstream.store.migrations import configured
from lozenge_downstream.store.tables import metadata
from tests.postgres import database

INDEXES = {
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL",
    "postgresql": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
}
"""Every index as its database writes it; Alembic's comparison does not look at the condition of a partial one."""


@pytest.fixture(params=["sqlite", "postgresql"])
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """The URLs of two empty databases of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'a.db'}", f"sqlite:///{tmp_path / 'b.db'}"
    server = request.getfixturevalue("postgres")
    return database(server, uuid4().hex), database(server, uuid4().hex)


@pytest.fixture
def empty(urls: tuple[str, str]) -> str:
    """The URL of an empty database of each kind."""
    return urls[0]


@pytest.fixture
def connection(empty: str) -> Iterator[sql.Connection]:
    """A connection to it, once a store was opened there."""
    Store(empty).close()
    engine = sql.create_engine(empty)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def indexes(connection: sql.Connection) -> dict[str, str]:
    """What each index of a database is."""
    rows = connection.execute(sql.text(INDEXES[connection.dialect.name]))
    return {name: " ".join(text.split()) for name, text in rows if not name.startswith("alembic_version")}


def head(connection: sql.Connection) -> str | None:
    return ScriptDirectory.from_config(configured(connection)).get_current_head()


def test_an_empty_database_is_brought_to_head(connection: sql.Connection) -> None:
    assert MigrationContext.configure(connection).get_current_revision() == head(connection)


def test_the_revisions_lie_in_the_package(connection: sql.Connection) -> None:
    package = Path(lozenge_downstream.store.__file__).parent
    assert Path(ScriptDirectory.from_config(configured(connection)).dir).resolve() == package / "migrations"


def test_head_has_the_tables_of_the_code(connection: sql.Connection) -> None:
    options = {"compare_type": True, "compare_server_default": True}
    assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []


def test_head_has_the_indexes_of_the_code(urls: tuple[str, str]) -> None:
    migrated, made = (sql.create_engine(url) for url in urls)
    Store(urls[0]).close()
    metadata.create_all(made)
    with migrated.connect() as one, made.connect() as other:
        assert indexes(one) == indexes(other)
    migrated.dispose()
    made.dispose()


def test_a_store_that_is_at_head_keeps_what_it_has(empty: str) -> None:
    with (store := Store(empty)).transaction() as t:
        t.positions.move(("topic", 0), None, 5)
    store.close()
    with (store := Store(empty)).reading() as t:
        assert t.positions.of(("topic", 0)) == 5
    store.close()


def test_a_database_of_a_newer_revision_is_refused(empty: str) -> None:
    Store(empty).close()
    engine = sql.create_engine(empty)
    with engine.begin() as connection:
        connection.execute(sql.text("UPDATE alembic_version SET version_num = '9999'"))
        newest = head(connection)
    engine.dispose()
    with pytest.raises(
        Fatal, match=f"its schema is revision 9999, the newest that this release knows is {newest}"
    ) as no:
        Store(empty)
    assert no.value.hint == "run the release that wrote it, or a newer one"


def test_of_notifiers_that_start_at_once_one_migrates(empty: str) -> None:
    statements: list[str] = []
    event.listen(Engine, "before_cursor_execute", note := lambda *called: statements.append(called[2]))
    try:
        with ThreadPoolExecutor(4) as threads:
            stores: list[Any] = list(threads.map(Store, [empty] * 4))
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    for store in stores:
        store.close()
    made = [" ".join(statement.split()) for statement in statements]
    assert sum(statement.startswith("CREATE TABLE cases ") for statement in made) == 1
    assert sum(statement.startswith("INSERT INTO alembic_version") for statement in made) == 1

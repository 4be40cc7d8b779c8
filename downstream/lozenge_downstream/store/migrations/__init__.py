"""The store's schema by Alembic revisions: each change of `tables` is a script in `versions`.

`python -m lozenge_downstream.store.migrations "what changes"` writes the next script from what `tables` says.
"""

import sqlalchemy as sql
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from lozenge.errors import Fatal


def configured(connection: sql.Connection) -> Config:
    """Alembic's configuration for the scripts of this package, which run in the transaction of `connection`."""
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", f"{__name__.rpartition('.')[0]}:migrations")
    config.set_main_option("path_separator", "os")
    config.set_main_option("file_template", "r%%(rev)s_%%(slug)s")
    return config


def upgrade(connection: sql.Connection, name: str) -> None:
    """Brings the store called `name` to the newest revision: all of it in this transaction, or nothing.

    Raises Fatal for a store of a revision that this release does not know.
    """
    config = configured(connection)
    scripts = ScriptDirectory.from_config(config)
    revision = MigrationContext.configure(connection).get_current_revision()
    if revision == scripts.get_current_head():
        return
    if revision is not None and revision not in {script.revision for script in scripts.walk_revisions()}:
        raise Fatal(
            f"opening the store {name}: its schema is revision {revision}, "
            f"the newest that this release knows is {scripts.get_current_head()}",
            hint="run the release that wrote it, or a newer one",
        )
    command.upgrade(config, "head")

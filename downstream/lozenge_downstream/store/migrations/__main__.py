"""`python -m lozenge_downstream.store.migrations MESSAGE`: writes the script that leads from the newest to `tables`."""

import sys

import sqlalchemy as sql
from alembic import command
from alembic.script import ScriptDirectory

from lozenge_downstream.store.migrations import configured, upgrade


def main(message: str) -> int:
    """The exit code."""
    engine = sql.create_engine("sqlite://")
    with engine.begin() as connection:
        upgrade(connection, "in memory")
        config = configured(connection)
        number = len(list(ScriptDirectory.from_config(config).walk_revisions())) + 1
        command.revision(config, message, autogenerate=True, rev_id=f"{number:04}")
    engine.dispose()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

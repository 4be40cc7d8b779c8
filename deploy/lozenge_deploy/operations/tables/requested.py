"""Tables that are requested of a platform: what is wrong with one is said before its loader runs, and not in a log."""

from collections.abc import Sequence

from lozenge.platform_tables.project import table_named
from lozenge.streams.project import project_folder


def requested_tables(names: Sequence[str] | None) -> list[str] | None:
    """The tables of these names, each once and in order; None for what is requested already.

    Raises UsageError for a name that there is not, ConfigError for a wrong declaration or a variable that is not set.
    """
    if not names:
        return None
    project = project_folder()
    for name in names:
        table_named(project, name).address()
    return sorted({*names})

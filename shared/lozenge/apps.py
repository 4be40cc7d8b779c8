"""The names of apps: groups, transactional ids, headers, metrics and logs have them.

An app is a detector, or part of the platform. The name of a detector has no hyphen, so none can take that of a
normaliser, a sink, a file source or the loader of a table.
"""

import re

UPSTREAM, DOWNSTREAM = "upstream", "downstream"
"""Apps that are part of the platform and no detectors."""
NORMALISER = rf"{UPSTREAM}(-[a-z][a-z0-9_]*)?"
"""The names that the normaliser of a stream can have."""
_SINK, _FILES, _TABLE = "sink-", "files-", "table-"
DECLARED = rf"(?:{_SINK}|{_TABLE})[a-z][a-z0-9_]{{0,63}}"
"""The names of sinks and of loaders of tables, whose folders declare all that they are."""


def sink_app(name: str) -> str:
    """The app of a sink."""
    return f"{_SINK}{name}"


def file_source_app(name: str) -> str:
    """The app of a file source."""
    return f"{_FILES}{name}"


def source_of(app: str) -> str:
    """The file source of an app that is one."""
    return app.removeprefix(_FILES)


def table_app(name: str) -> str:
    """The app of the loader of a table of the platform."""
    return f"{_TABLE}{name}"


def is_table(app: str) -> bool:
    """Whether an app is the loader of a table of the platform."""
    return app.startswith(_TABLE)


def is_file_source(app: str) -> bool:
    """Whether an app is a file source."""
    return app.startswith(_FILES)


def is_sink(app: str) -> bool:
    """Whether an app is a sink."""
    return app.startswith(_SINK)


def is_upstream(app: str) -> bool:
    """Whether an app is the normaliser of a stream."""
    return re.fullmatch(NORMALISER, app) is not None


def is_stage(app: str) -> bool:
    """Whether an app is part of the platform and no detector."""
    return app == DOWNSTREAM or is_upstream(app) or is_sink(app) or is_file_source(app) or is_table(app)

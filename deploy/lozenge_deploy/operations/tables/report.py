"""What people see of a table of the platform: pure over what is loaded, and the metrics of its loader."""

from collections.abc import Sequence
from typing import Any

from lozenge_deploy.observe.metrics_reader import table_state
from lozenge_deploy.observe.metrics_table import Samples
from lozenge_deploy.operations.tables.loaded import LoadedTable

NOT_RUNNING = "not running"
_GOOD = "lozenge_table_good_timestamp_seconds"


def state_of(samples: Samples) -> str:
    """What the last look of a running loader has found; that none runs if no process reports."""
    return table_state(samples) or NOT_RUNNING


def table_row(
    name: str, loaded: LoadedTable | None, samples: Samples, used_by: Sequence[str], now: float
) -> dict[str, Any]:
    """A table of the platform in a table; `samples` are those of its running loader, `now` is Unix time."""
    good = samples.get(_GOOD, 0.0)
    return {
        "table": name,
        "state": state_of(samples),
        "rows": len(loaded.rows) if loaded is not None else 0,
        "version": loaded.version if loaded is not None else None,
        "good_seconds_ago": round(now - good) if good else None,
        "used_by": [*used_by],
        "columns": loaded.columns.columns if loaded is not None else None,
        "key": [*loaded.columns.key] if loaded is not None else [],
    }

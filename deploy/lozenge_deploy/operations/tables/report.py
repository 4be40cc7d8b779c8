"""What people see of a table of the platform: pure over what is loaded, and the metrics of its loader."""

from collections.abc import Mapping, Sequence
from typing import Any

from lozenge.metrics.sample_text import decode
from lozenge_deploy.operations.tables.loaded import LoadedTable

Samples = Mapping[str, float]
NOT_RUNNING = "not running"
_STATE, _GOOD = "lozenge_table_state", "lozenge_table_good_timestamp_seconds"


def state_of(samples: Samples) -> str:
    """What the last look of a running loader has found; that none runs if no process reports."""
    labelled = (decode(text) for text, value in samples.items() if value)
    return next((labels["state"] for name, labels in labelled if name == _STATE), NOT_RUNNING)


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

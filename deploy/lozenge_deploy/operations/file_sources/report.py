"""What people see of file sources: pure over positions, requests and metrics."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from lozenge.protocol.file_positions import FilePosition, FileState
from lozenge.protocol.source_requests import SourceState

Samples = Mapping[str, float]


def source_row(
    name: str, state: SourceState | None, positions: Iterable[FilePosition], samples: Samples, rate: float
) -> dict[str, Any]:
    """A file source in a table; `samples` are those of its running instances, `rate` its rows a second."""
    positions = list(positions)
    counts = Counter(position.state for position in positions)
    request = state.request if state is not None else None
    copying = [position for position in positions if position.state is FileState.COPYING]
    left = sum(max(0, position.total - position.place.rows) for position in copying)
    return {
        "source": name,
        "phase": "not deployed" if request is None else "paused" if request.paused else "deployed",
        "release": f"r{request.release}" if request is not None else "",
        "instances": request.instances if request is not None else 0,
        "waiting": int(samples.get("lozenge_files{state=waiting}", 0)),
        "copying": counts[FileState.COPYING],
        "done": counts[FileState.DONE],
        "failed": counts[FileState.FAILED],
        "rows": sum(position.place.rows - position.bad for position in positions),
        "bad": sum(position.bad for position in positions),
        "per_second": round(rate, 1),
        "limit": request.rate if request is not None and request.rate else None,
        "rows_left_of_copying": left or None,
        "waiting_bytes": int(samples.get("lozenge_files_waiting_bytes", 0)),
    }


def file_row(position: FilePosition) -> dict[str, Any]:
    """A file in a table."""
    share = f"{100 * position.place.rows / position.total:.0f} %" if position.total else ""
    return {
        "file": position.path,
        "state": str(position.state),
        "rows": position.place.rows,
        "of": position.total or None,
        "share": share,
        "bad": position.bad,
        "at": position.at.isoformat(timespec="seconds"),
        "reason": position.reason,
        "bytes": position.id.size,
        "instance": position.instance,
    }

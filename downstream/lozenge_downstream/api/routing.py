"""The requests about the routing file: which one is used, its versions, and the labels that it may match."""

from collections.abc import Callable, Sequence
from typing import Any

from starlette.requests import Request

from lozenge_downstream.pipeline.pipeline import Pipeline
from lozenge_downstream.store import Store

VERSIONS = 100
"""The latest versions of the routing file that are shown."""


class RoutingApi:
    """Answers them."""

    def __init__(self, store: Store, pipeline: Pipeline) -> None:
        self._store, self._pipeline = store, pipeline

    def requests(self) -> Sequence[tuple[str, str, Callable[[Request, Any], Any]]]:
        """The method, path and handler of each."""
        return [("GET", "/routing", self._routing), ("GET", "/labels", self._labels)]

    def _routing(self, _: Request, __: Any) -> Any:
        with self._store.reading() as t:
            versions = t.routing_versions.latest(VERSIONS)
        used = self._pipeline.source
        shown = [
            {"loaded_at": v.loaded_at, "version": v.version, "file": v.file, "problems": v.problems} for v in versions
        ]
        return {"file": used.file, "version": used.version, "versions": shown}

    def _labels(self, _: Request, __: Any) -> Any:
        with self._store.reading() as t:
            return {"labels": t.received_alerts.labels()}

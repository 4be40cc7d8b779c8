"""Applies each new version of the routing file, records it, and raises an alarm about one that is invalid."""

from collections.abc import Callable, Collection

from lozenge.process.logging import logger
from lozenge_downstream.model import RoutingSource
from lozenge_downstream.pipeline.mute import rule_of
from lozenge_downstream.pipeline.pipeline import Pipeline
from lozenge_downstream.routing.config_reload import ConfigReload
from lozenge_downstream.routing.warnings import warnings_of
from lozenge_downstream.store import Store
from lozenge_downstream.store.routing_versions import RoutingVersion


class RoutingWatch:
    """The routing file of one notifier. `wake` signals that there may be something to send."""

    def __init__(self, file: ConfigReload, store: Store, pipeline: Pipeline, wake: Callable[[], None]) -> None:
        self._file, self._store, self._pipeline, self._wake = file, store, pipeline, wake

    def start(self) -> None:
        """Applies the file as it was read at the start: it may have changed while no notifier ran."""
        with self._store.reading() as t:
            known = t.inhibitors.active_rules()
        self._apply(known)
        self._record()

    def step(self) -> None:
        """Applies the file if it has changed and is valid."""
        before = self._file.read, self._file.problem
        if self._file.reload():
            self._apply({rule_of(rule) for rule in self._pipeline.routing.inhibit_rules})
        if before != (self._file.read, self._file.problem):
            self._record()

    def _apply(self, known_rules: Collection[str]) -> None:
        self._pipeline.routing = self._file.current
        self._pipeline.source = RoutingSource(self._file.file, self._file.version)
        with self._store.transaction(exclusive=True) as t:
            self._pipeline.apply_new_inhibitions(known_rules, t)
        self._warn()

    def _record(self) -> None:
        file = self._file
        if not file.file:
            return
        with self._store.transaction(exclusive=True) as t:
            t.routing_versions.record(RoutingVersion(file.read, file.file, file.text, file.problem))
            if file.problem:
                self._pipeline.raise_routing_alarm(file.read, file.problem, t)
        self._wake()

    def _warn(self) -> None:
        """Logs what the file probably does not mean, and messages whose channel it does not have."""
        with self._store.reading() as t:
            waiting = t.deliveries.orphans(self._file.current.channels)
            labels = t.received_alerts.labels()
        for warning in warnings_of(self._file.current, labels) if labels else ():
            logger().warning(f"routing file: {warning}")
        for name, count in waiting.items():
            logger().warning("deliveries wait for a channel that is not configured", channel=name, deliveries=count)

"""The metrics of an instance of a file source."""

from collections.abc import Mapping

from lozenge.metrics.app_metrics import AppMetrics

STATES = ("waiting", "copying", "done", "failed")


class FileMetrics(AppMetrics):
    """Records are rows; emitted are the raw records. Files are those of the instance's own partitions."""

    STAGES = ("decode",)

    def __init__(self, app: str, instance: str = "") -> None:
        super().__init__(app, instance)
        self._files = self._gauge("lozenge_files", "Files of a file source by state", "state")
        self._bytes = self._gauge("lozenge_files_waiting_bytes", "Bytes of the files that are not copied yet")
        self.files({}, 0)

    def files(self, counts: Mapping[str, int], waiting_bytes: int) -> None:
        """Sets the number of files in each of `STATES`, and the bytes of those that wait or are copied now."""
        for state in STATES:
            self._files.labels(state).set(counts.get(state, 0))
        self._bytes.set(waiting_bytes)

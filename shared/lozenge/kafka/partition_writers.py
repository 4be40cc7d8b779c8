"""Who writes for which partitions of the input: one writer for all, or one for each where instances share them."""

from collections.abc import Collection, Iterator

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.writers import TransactionalWriter


class PartitionWriters:
    """The writers of one job, each with a transactional id of its own.

    A partition that is shared has a writer for itself, `<app>-<partition>`, so that it can be taken from one instance
    without any harm to the others; all that is open of its former owner ends with that.
    """

    def __init__(self, kafka: KafkaSettings, app: str) -> None:
        self._kafka, self._app = kafka, app
        self._unused = {app: TransactionalWriter(kafka, app)}  # it connects while others are still waited for
        self._writers: dict[frozenset[int], TransactionalWriter] = {}

    def fence(self, partitions: Collection[int], *, shared: bool, before: bool) -> None:
        """From now on nobody else writes for `partitions`, which were shared `before` or not.

        Raises BrokerUnavailable.
        """
        self._writers = {own: self._fenced(name) for name, own in self._names(partitions, shared).items()}
        if shared != before:
            for name in self._names(partitions, before):
                self._fenced(name)

    def each(self) -> Iterator[tuple[TransactionalWriter, frozenset[int]]]:
        """Every writer, with the partitions for which it writes."""
        yield from ((writer, own) for own, writer in self._writers.items())

    def _fenced(self, name: str) -> TransactionalWriter:
        writer = self._unused.pop(name, None) or TransactionalWriter(self._kafka, name)
        writer.fence()
        return writer

    def _names(self, partitions: Collection[int], shared: bool) -> dict[str, frozenset[int]]:
        if not shared:
            return {self._app: frozenset(partitions)}
        return {f"{self._app}-{partition}": frozenset([partition]) for partition in partitions}

"""`python -m tests.integration.sink.plain_archive NAME ARCHIVE`: an instance of a sink that reads by the plain loop."""

import sys
from contextlib import closing
from pathlib import Path

from lozenge.errors import LozengeError
from lozenge.kafka.group_offsets import Committed
from lozenge.kafka.settings import KafkaSettings
from lozenge.metrics.app_metrics import SinkMetrics
from lozenge.process import logging
from lozenge.process.shutdown import StopSignal
from lozenge.sink.sink_loop import SinkLoop
from lozenge.sink.table_shares import TableShares
from lozenge.sink.topic_sink import ArchiveReading
from tests.integration.sink.archiving import declared
from tests.plain_loop import PlainLoop
from tests.streams import AUTH


def main() -> int:
    """Runs until SIGTERM; the exit code."""
    name, archive = sys.argv[1:]
    stop, kafka, sink = StopSignal(), KafkaSettings.load(), declared(name, records=["events"])
    logging.configure(sink.app)
    with closing(Committed(kafka, sink.app)) as committed:
        reading = ArchiveReading(kafka, sink.app, PlainLoop(kafka), committed)
        shares = TableShares(kafka, sink.app)
        try:
            SinkLoop(sink, [AUTH], Path(archive), reading, shares, SinkMetrics(sink.app)).run(stop)
        except LozengeError as error:
            return logging.report(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())

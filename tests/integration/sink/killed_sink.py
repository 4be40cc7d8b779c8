"""`python -m tests.integration.sink.killed_sink NAME ARCHIVE POINT`: archives events, and is killed at a point.

It reads by the plain loop, since no point depends on what decodes; the test that starts it resumes with Spark.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from lozenge.archive.delta_table import ArchiveTable
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge.kafka.writers import TransactionalWriter
from lozenge.sink.topic_sink import TopicSink
from tests.integration.sink.archiving import AT_ONCE, declared, sharing, sink_of, topics_of
from tests.plain_loop import PlainLoop


def _killed(*_: Any, **__: Any) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("it lives")


POINTS: dict[str, tuple[type, str]] = {
    "before the files": (ArchiveTable, "append"),
    "between the files and the commit of the table": (ArchiveTable, "_commit"),
    "between the commit of the table and that of the group": (TopicSink, "_move_group"),
    "within the transaction of the group": (TransactionalWriter, "_retrying"),
}


def main() -> None:
    """Commits once; the second commit does not survive."""
    name, archive, point = sys.argv[1:]
    kafka, sink = KafkaSettings.load(), declared(name)
    topic = topics_of(kafka, sink)["events_auth"]
    count = partitions(kafka)[topic.topic]
    with sharing(kafka, sink, PlainLoop(kafka)) as shared:
        archived = sink_of(topic, sink, Path(archive), shared)
        ends = {p: shared.committed.bounds(_partition(topic.topic, p))[1] for p in range(count)}
        archived.commit({p: end // 2 for p, end in ends.items()}, AT_ONCE)
        target, method = POINTS[point]
        setattr(target, method, _killed)
        archived.commit(ends, AT_ONCE)


def _partition(topic: str, number: int) -> Any:
    from confluent_kafka import TopicPartition

    return TopicPartition(topic, number)


if __name__ == "__main__":
    main()

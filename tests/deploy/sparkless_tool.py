"""A tool of a rule as a process without Spark: everything around its evaluation is what `lozenge.job.tools` runs.

Usage: `python -m tests.deploy.sparkless_tool backtest|backfill|describe FOLDER ...`. Output and exit codes are those of
the tool.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from confluent_kafka import Message

from lozenge.detector.loader import LoadedDetector
from lozenge.detector.manifest import Manifest
from lozenge.detector.tables.reference_tables import ReferenceTables
from lozenge.job.batch_result import BatchResult
from lozenge.job.identity import Identity
from lozenge.job.query.poison_search import Ranges
from lozenge.job.tools import backfill, backtest, describe, dry_plan
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_reader import read
from lozenge.process.shutdown import end
from lozenge.protocol.coverage import Versions
from tests.deploy.sparkless_rule import draft_alerts

TOOLS: dict[str, Any] = {"backtest": backtest, "backfill": backfill, "describe": describe}


class SparklessReader:
    """In the place of an `EventReader`: it reads the ranges itself."""

    def __init__(self, identity: Identity, declaration: Manifest, kafka: KafkaSettings, spark: object) -> None:
        self._identity, self._kafka = identity, kafka

    def learn(self) -> None:
        """Nothing: the events of these tests have the newest schema."""

    def read(self, ranges: Ranges) -> Iterator[Message]:
        """The records of `ranges`."""
        messages = read(self._kafka, self._identity.input, {p: begin for p, (begin, _) in ranges.items()})
        return (m for m in messages if (m.offset() or 0) < ranges[m.partition() or 0][1])


class SparklessBuilder:
    """In the place of a `QueryBuilder`: it builds no query."""

    def __init__(
        self,
        loaded: LoadedDetector,
        identity: Identity,
        settings: Any,
        events: SparklessReader,
        tables: ReferenceTables,
    ) -> None:
        self.settings, self.events = settings, events
        self.versions = Versions(settings.digest, tables.taken)


def _evaluate(
    builder: SparklessBuilder, kind: str, ranges: Ranges, partitions: int, *, parts: object = None
) -> BatchResult:
    return BatchResult(list(draft_alerts(builder.events.read(ranges), builder.settings.limit)))


def main() -> int:
    """Runs the tool; returns its exit code."""
    tool = TOOLS[sys.argv.pop(1)]
    replaced: dict[str, Any] = {
        "EventReader": SparklessReader,
        "QueryBuilder": SparklessBuilder,
        "evaluate": _evaluate,
        "tool_session": lambda _: None,
        "jvm_pid": lambda _: os.getpid(),
    }
    with ExitStack() as patches:
        patches.enter_context(patch.object(dry_plan, "check", lambda *_: ""))
        for name, by in replaced.items():
            if hasattr(tool, name):
                patches.enter_context(patch.object(tool, name, by))
        code: int = tool.main()
    return code


if __name__ == "__main__":
    end(main())

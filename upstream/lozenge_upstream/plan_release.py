"""`python -m lozenge_upstream.plan_release STREAM < request`: what the stream's folder would make of raw records.

The request is JSON: `files` of the release to compare with (null for none), `ranges` of offsets by topic and partition,
and how many `examples` of each kind to show. The answer is that of `ChangeSummary`. Records are read, nothing is
written. Exit codes: 0 answered, 1 failed, 2 there is no such stream, or a mapping is wrong, 3 no broker.
"""

import json
import sys

import msgspec

from lozenge.host.tool_host import tool_session
from lozenge.kafka.settings import KafkaSettings
from lozenge.process.env_settings import load
from lozenge.process.standard_output import print_answer
from lozenge.spark.kafka_source import bounded
from lozenge.streams.folder import MAPPINGS, read
from lozenge.streams.project import Streams
from lozenge.streams.release_files import as_folder
from lozenge_upstream.normalise import mapping_files
from lozenge_upstream.normalise.mapping import Mapping
from lozenge_upstream.normalise.mapping_check import all_runnable, runnable
from lozenge_upstream.normalise.mapping_files import Mappings
from lozenge_upstream.releases.change_summary import ChangeSummary
from lozenge_upstream.releases.compared_records import differences, names_of
from lozenge_upstream.settings import UpstreamSettings
from lozenge_upstream.streaming.query_builder import SPARK


class PlanRequest(msgspec.Struct, frozen=True):
    """The files of the release before, the offsets to compare (from, to), and how many examples of each kind."""

    files: dict[str, str] | None
    ranges: dict[str, dict[int, tuple[int, int]]]
    examples: int = 5


def answer(stream: str, request: PlanRequest, settings: UpstreamSettings, kafka: KafkaSettings) -> str:
    """The JSON of what differs. Raises ConfigError, UsageError, BrokerUnavailable, SparkGone, ToolchainError."""
    streams = Streams.load()
    definition = streams.get(stream)
    after = mapping_files.read(streams.mappings(definition), definition)
    before = _mappings_of(request.files, definition.name) if request.files is not None else Mappings([], [])
    spark = tool_session("plan", SPARK)
    new, old = all_runnable(spark, after), runnable(spark, before).usable
    key = settings.token_key.get_secret_value().encode()
    found = ChangeSummary(request.examples)
    for topic, ranges in request.ranges.items():
        one, other = (_of_topic(topic, each, kafka) for each in (old, new))
        raw = bounded(spark, kafka, "plan", topic, ranges)
        names = names_of((one, other))
        found.add(topic, names, raw.count(), differences(raw, one, other, names, key))
    return json.dumps(found.as_json(), ensure_ascii=False)


def _mappings_of(files: dict[str, str], stream: str) -> Mappings:
    with as_folder(files, stream) as folder:
        return mapping_files.read(folder / MAPPINGS, read(folder))


def _of_topic(topic: str, mappings: list[Mapping], kafka: KafkaSettings) -> Mapping | None:
    return next((each for each in mappings if kafka.topics.prefixed(each.topic) == topic), None)


def main(stream: str) -> int:
    """Answers, and returns the exit code."""

    def answered() -> str:
        settings, kafka = load(UpstreamSettings, KafkaSettings)
        request = msgspec.json.decode(sys.stdin.buffer.read(), type=PlanRequest)
        return answer(stream, request, settings, kafka)

    return print_answer(answered)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

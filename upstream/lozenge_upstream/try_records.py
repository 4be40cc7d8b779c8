"""`python -m lozenge_upstream.try_records STREAM [SOURCE] < records`: what upstream would make of raw records, as JSON.

Each line is a record, unless the first line alone is no JSON: then the whole input is one. Nothing is written, and no
broker is needed. The source may be omitted where the stream has one. Exit codes: 0 answered, 1 failed, 2 there is no
such stream or mapping, or it is wrong.
"""

import argparse
import json
import sys
from datetime import UTC, datetime

from lozenge.errors import UsageError
from lozenge.host.tool_host import tool_session
from lozenge.process.standard_output import print_answer
from lozenge.streams.project import Streams
from lozenge_upstream.normalise import mapping_files
from lozenge_upstream.normalise.mapping import Mapping
from lozenge_upstream.normalise.mapping_check import runnable
from lozenge_upstream.normalise.mapping_files import Mappings, wrong_mappings
from lozenge_upstream.settings import UpstreamSettings
from lozenge_upstream.stream_samples.tried_record import try_records
from lozenge_upstream.streaming.query_builder import SPARK


def records_in(text: bytes) -> list[bytes]:
    """The records of an input: its lines, or all of it where the first line is no whole JSON value."""
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        json.loads(lines[0] if lines else b"")
    except ValueError:
        return [text.strip()]
    return lines


def mapping_of(source: str, read: Mappings) -> Mapping:
    """The mapping of that source, or the only one for "". Raises ConfigError if it is wrong, UsageError if unknown."""
    for mapping in read.usable:
        if source in (mapping.source, "" if len(read.usable) == 1 and not read.refused else mapping.source):
            return mapping
    if refused := [each for each in read.refused if source in (each.name, each.name.removesuffix(".toml"))]:
        raise wrong_mappings(refused)
    known = ", ".join(sorted(mapping.source for mapping in read.usable))
    what = f"there is no mapping of the source {source}" if source else "the stream has several mappings"
    raise UsageError(f"trying records: {what}", hint=f"name one by --source: {known}")


def answer(stream: str, source: str, text: bytes, settings: UpstreamSettings) -> str:
    """The JSON of what becomes of each record. Raises ConfigError, UsageError, SparkGone, ToolchainError."""
    streams = Streams.load()
    definition = streams.get(stream)
    read = mapping_files.read(streams.mappings(definition), definition)
    mapping = mapping_of(source, read)
    spark = tool_session("try", SPARK)
    mapping = mapping_of(mapping.source, runnable(spark, Mappings([mapping], [])))
    key = settings.token_key.get_secret_value().encode()
    now = datetime.now(UTC)
    tried = try_records(spark, mapping, [(record, now) for record in records_in(text)], key)
    return json.dumps([each.shown() for each in tried], ensure_ascii=False)


def main() -> int:
    """Answers, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lozenge_upstream.try_records")
    parser.add_argument("stream")
    parser.add_argument("source", nargs="?", default="", help="Of one of its mappings.")
    given = parser.parse_args()
    return print_answer(lambda: answer(given.stream, given.source, sys.stdin.buffer.read(), UpstreamSettings.load()))


if __name__ == "__main__":
    sys.exit(main())

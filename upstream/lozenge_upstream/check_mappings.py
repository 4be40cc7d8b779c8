"""`python -m lozenge_upstream.check_mappings STREAM`: whether upstream can run every mapping of a stream, as JSON.

The answer has `mappings`, a source and a raw topic each, and `problems`, all of all files at once, those of the samples
among them. Nothing is written, and no broker is needed. Exit codes: 0 answered, 1 failed, 2 there is no such stream, or
its own files are wrong.
"""

import json
import sys
from collections.abc import Callable

from pyspark.sql import SparkSession

from lozenge.host.tool_host import tool_session
from lozenge.process.standard_output import print_answer
from lozenge.streams.project import Streams
from lozenge_upstream.normalise import mapping_files
from lozenge_upstream.normalise.mapping_check import runnable
from lozenge_upstream.stream_samples import sample_files
from lozenge_upstream.streaming.query_builder import SPARK


def answer(stream: str, streams: Streams, session: Callable[[], SparkSession]) -> str:
    """The JSON of what is declared and what is wrong; a session is made once the files are read.

    Raises ConfigError, UsageError.
    """
    definition = streams.get(stream)
    read = mapping_files.read(streams.mappings(definition), definition)
    found = runnable(session(), read)
    mappings = [{"source": mapping.source, "topic": mapping.topic} for mapping in found.usable]
    problems = [problem for refused in found.refused for problem in refused.problems]
    if not read.refused:  # else samples of a mapping that is refused would be problems too
        problems += sample_files.read(streams.samples(definition), read.usable)[1]
    return json.dumps({"mappings": mappings, "problems": problems}, ensure_ascii=False)


def main(stream: str) -> int:
    """Answers, and returns the exit code."""
    return print_answer(lambda: answer(stream, Streams.load(), lambda: tool_session("check", SPARK)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

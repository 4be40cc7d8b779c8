"""`python -m lozenge_upstream.check_mappings STREAM`: whether upstream can run every mapping of a stream, as JSON.

The answer has `mappings`, a source and a raw topic each, and `problems`, all of all files of its folder at once, each
with its line. Nothing is written, and no broker is needed. Exit codes: 0 answered, 1 failed, 2 there is no such stream.
"""

import json
import sys
from collections.abc import Callable

from pyspark.sql import SparkSession

from lozenge.host.tool_host import tool_session
from lozenge.process.standard_output import print_answer
from lozenge.streams.folder import MAPPINGS
from lozenge.streams.project import Streams
from lozenge_upstream.normalise import mapping_files
from lozenge_upstream.normalise.mapping_check import runnable
from lozenge_upstream.stream_samples import sample_files
from lozenge_upstream.streaming.query_builder import SPARK


def answer(stream: str, streams: Streams, session: Callable[[], SparkSession]) -> str:
    """The JSON of what is declared and what is wrong; a session is made once the files are read.

    Raises ConfigError, UsageError.
    """
    definition, problems = streams.readable(stream)
    own = [problem.removeprefix(f"{stream}/") for problem in problems]
    if definition is None:
        found = mapping_files.form_problems(streams.folder / stream / MAPPINGS)
        return json.dumps({"mappings": [], "problems": [*own, *found]}, ensure_ascii=False)
    checked = runnable(session(), mapping_files.read(streams.mappings(definition), definition))
    mappings = [{"source": mapping.source, "topic": mapping.topic} for mapping in checked.usable]
    own += [problem for refused in checked.refused for problem in refused.problems]
    own += sample_files.read(streams.samples(definition), checked.usable, checked.refused)[1]
    return json.dumps({"mappings": mappings, "problems": list(dict.fromkeys(own))}, ensure_ascii=False)


def main(stream: str) -> int:
    """Answers, and returns the exit code."""
    return print_answer(lambda: answer(stream, Streams.load(), lambda: tool_session("check", SPARK)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

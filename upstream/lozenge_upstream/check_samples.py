"""`python -m lozenge_upstream.check_samples STREAM [SOURCE]`: whether each sample becomes what it must, as JSON.

The answer has `samples`, each with its `failures`, and `without`, the sources that have none. Nothing is written, and
no broker is needed. Exit codes: 0 answered, 1 failed, 2 there is no such stream, mapping or sample, or it is wrong.
With `--or-none` a stream without samples is no error. Its mappings are planned all the same.
"""

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial

from pyspark.sql import SparkSession

from lozenge.errors import ConfigError, UsageError
from lozenge.host.tool_host import tool_session
from lozenge.process.standard_output import print_answer
from lozenge.streams.project import Streams
from lozenge_upstream.normalise import mapping_files
from lozenge_upstream.normalise.mapping_check import all_runnable
from lozenge_upstream.normalise.mapping_files import wrong_mappings
from lozenge_upstream.stream_samples import sample_files
from lozenge_upstream.stream_samples.sample_run import run
from lozenge_upstream.streaming.query_builder import SPARK

_EXAMPLE = """{folder}/{source}.toml has them:

    arrived = 2026-03-01T12:00:00Z    # when the raw records came to their topic

    [[sample]]
    name = "a usual record"
    record = '''{{...}}'''
    event = {{ {field} = "..." }}    # or dead_letter = "missing:{field}", or skipped = "..."

`lozenge stream try {stream} --source {source} < record.json` shows what a record becomes"""


def answer(
    stream: str, source: str, streams: Streams, session: Callable[[], SparkSession], *, or_none: bool = False
) -> str:
    """The JSON of what becomes of each sample; a session is made once the files are read.

    Raises ConfigError with every problem of all mappings and samples, UsageError.
    """
    definition = streams.get(stream)
    folder = streams.samples(definition)
    read = mapping_files.read(streams.mappings(definition), definition)
    known = [mapping.source for mapping in read.usable]
    if source and source not in known:
        raise UsageError(
            f"testing the stream {stream}: there is no source {source}", hint=f"name one of {', '.join(known)}"
        )
    found, problems = sample_files.read(folder, read.usable)
    if read.refused:
        raise wrong_mappings(read.refused)
    if problems:
        raise ConfigError(f"reading the samples of {stream}", problems=problems, hint="fix what is named")
    wanted = [each for each in found if source in ("", each.source)]
    if not wanted and not or_none:
        names = {"folder": folder, "source": source or known[0], "stream": stream, "field": definition.fields[0].name}
        of = f" of the source {source}" if source else ""
        raise UsageError(f"testing the stream {stream}: it has no samples{of}", hint=_EXAMPLE.format(**names))
    spark = session()
    mappings = {mapping.source: mapping for mapping in all_runnable(spark, read)}
    results = [result for each in wanted for result in run(spark, mappings[each.source], each)]
    without = sorted({*known} - {each.source for each in found}) if not source else []
    return json.dumps({"samples": [each.shown() for each in results], "without": without}, ensure_ascii=False)


def main() -> int:
    """Answers, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lozenge_upstream.check_samples")
    parser.add_argument("stream")
    parser.add_argument("source", nargs="?", default="", help="Of one of its mappings.")
    parser.add_argument("--or-none", action="store_true", help="A stream without samples is no error.")
    given = parser.parse_args()

    def answered() -> str:
        session = partial(tool_session, "test", SPARK)
        return answer(given.stream, given.source, Streams.load(), session, or_none=given.or_none)

    return print_answer(answered)


if __name__ == "__main__":
    sys.exit(main())

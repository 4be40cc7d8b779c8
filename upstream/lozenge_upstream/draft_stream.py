"""`python -m lozenge_upstream.draft_stream NAME < records`: the draft of a stream from real records, as JSON.

The answer has `files`, the text of each by its path in the folder of the stream, and `notes`, what was guessed.
Upstream's own code has run the mapping on every record. Nothing is written, and no broker is needed. Exit codes: 0
answered, 1 failed, 2 a person has to say more.
"""

import argparse
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from lozenge.errors import UsageError
from lozenge.host.tool_host import tool_session
from lozenge.process.standard_output import print_answer
from lozenge.streams import folder
from lozenge.streams.project import Streams, folders_in, streams_folder
from lozenge.streams.release_files import as_folder
from lozenge_upstream.normalise import mapping_files
from lozenge_upstream.normalise.mapping_check import all_runnable
from lozenge_upstream.stream_draft.draft import DraftRequest, StreamDraft, drafted, revised
from lozenge_upstream.stream_draft.draft_files import definition_files, sample_file
from lozenge_upstream.stream_draft.raw_records import RawText, records_in
from lozenge_upstream.stream_draft.safe_records import without_cards
from lozenge_upstream.stream_samples.sample_run import TOKEN_KEY
from lozenge_upstream.stream_samples.tried_record import TriedRecord, try_records
from lozenge_upstream.streaming.query_builder import SPARK

MOST_SAMPLES = 5
_MOST_REVISIONS = 4


def answer(
    request: DraftRequest, content: bytes, streams: Streams, session: Callable[[], SparkSession], now: datetime
) -> str:
    """The JSON of the draft; a session is made once the records are read. Raises UsageError."""
    for other in streams.definitions:
        if request.topic in other.raw_topics:
            raise UsageError(
                f"drafting the stream {request.name}: {other.name} reads the raw topic {request.topic}",
                hint="name another by --topic",
            )
        if request.source in other.sources:
            raise UsageError(
                f"drafting the stream {request.name}: {other.name} has a source {request.source}: ids would be equal",
                hint="name another by --source",
            )
    texts = without_cards([record.text for record in records_in(content)])
    records = records_in("\n".join(texts).encode())
    draft = drafted(request, records)
    spark = session()
    tried = _tried(spark, draft, records, now)
    for _ in range(_MOST_REVISIONS):
        problems = {problem for record in tried for problem in record.problems}
        if (better := revised(draft, sorted(problems))) == draft:
            break
        draft = better
        tried = _tried(spark, draft, records, now)
    dead = [
        f"record {number} is a dead letter: {', '.join(each.problems)}"
        for number, each in enumerate(tried, 1)
        if each.problems
    ]
    samples = [(number + 1, records[number].text, tried[number]) for number in _various(records, tried)]
    files = definition_files(draft) | sample_file(draft, samples, now.replace(microsecond=0))
    return json.dumps({"files": files, "notes": [*draft.said, *dead[:MOST_SAMPLES]]}, ensure_ascii=False)


def _tried(spark: SparkSession, draft: StreamDraft, records: list[RawText], now: datetime) -> list[TriedRecord]:
    """What the drafted files, read as any others, make of the records."""
    with as_folder(definition_files(draft), draft.request.name) as home:
        [mapping] = all_runnable(spark, mapping_files.read(home / folder.MAPPINGS, folder.read(home)))
    return try_records(spark, mapping, [(record.text.encode(), now) for record in records], TOKEN_KEY)


def _various(records: list[RawText], tried: list[TriedRecord]) -> list[int]:
    """The numbers of a few records, of each shape and outcome first one, in their order."""
    shapes = [(tuple(sorted(r.event or ())), r.problems) for r in tried]
    first = [number for number, shape in enumerate(shapes) if shape not in shapes[:number]]
    others = [number for number in range(len(records)) if number not in first]
    return sorted([*first, *others][:MOST_SAMPLES])


def main() -> int:
    """Answers, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lozenge_upstream.draft_stream")
    parser.add_argument("request", help="The request, as a JSON object.")
    given = parser.parse_args()

    def answered() -> str:
        request = DraftRequest(**json.loads(given.request))
        content, where = sys.stdin.buffer.read(), streams_folder()
        streams = Streams.of(where) if any(folders_in(where)) else Streams(where, ())
        return answer(request, content, streams, lambda: tool_session("draft", SPARK), datetime.now(UTC))

    return print_answer(answered)


if __name__ == "__main__":
    sys.exit(main())

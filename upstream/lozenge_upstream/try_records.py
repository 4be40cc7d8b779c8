"""`python -m lozenge_upstream.try_records STREAM [SOURCE] < records`: what upstream would make of raw records, as JSON.

Each line is a record, unless the first line alone is no JSON: then the whole input is one. The elements of an array are
records too. Each answer has its reasons as `problems`, and what they mean as `sentences`. Nothing is written, and no
broker is needed. The source may be omitted where the stream has one. Exit codes: 0 answered, 1 failed, 2 there is no
such stream or mapping, or it is wrong.
"""

import argparse
import json
import re
import sys
from datetime import UTC, datetime
from typing import Any

from lozenge.errors import UsageError
from lozenge.host.tool_host import tool_session
from lozenge.process.standard_output import print_answer
from lozenge.process.text_files import text_in
from lozenge.streams.project import Streams
from lozenge.streams.reasons import sentence
from lozenge_upstream.normalise import mapping_files
from lozenge_upstream.normalise.mapping import Mapping
from lozenge_upstream.normalise.mapping_check import runnable
from lozenge_upstream.normalise.mapping_files import Mappings, wrong_mappings
from lozenge_upstream.settings import UpstreamSettings
from lozenge_upstream.stream_samples.tried_record import try_records
from lozenge_upstream.streaming.query_builder import SPARK

_NO_JSON = object()
_BLANKS = re.compile(r"[\s,]*")


def records_in(text: bytes) -> list[bytes]:
    """The records of an input: its lines, or all of it where the first line is no whole JSON value.

    An array has the records that are its elements. Raises UsageError for one that is empty.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    whole = not lines or _value(lines[0]) is _NO_JSON
    found = [each for line in ([text.strip()] if whole else lines) for each in _elements(line)]
    if not found:
        raise UsageError("trying records: the array has none", hint="give JSON objects: lines, an array, or one alone")
    return found


def explained(record: bytes, reason: str) -> str:
    """The sentence of a reason; of one that is no JSON object what it is instead."""
    if reason != "invalid-json":
        return sentence(reason)
    try:
        value = json.loads(record)
    except json.JSONDecodeError as error:
        return f"the value is no JSON: {error}"
    except (ValueError, RecursionError):
        return sentence(reason)
    kinds = {list: "an array", str: "a text", bool: "a truth value", int: "a number", float: "a number"}
    if isinstance(value, dict):
        return sentence(reason)
    return f"the record is JSON, but {kinds.get(type(value), 'null')} and no object with fields"


def _value(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NO_JSON


def _elements(text: bytes) -> list[bytes]:
    """The elements of an array as they are written; anything else is one record."""
    if not isinstance(_value(text), list):
        return [text]
    written, decoder, found = text_in(text).strip(), json.JSONDecoder(), list[bytes]()
    at = _BLANKS.match(written, 1).end()  # type: ignore[union-attr]
    while written[at] != "]":
        end = decoder.raw_decode(written, at)[1]
        found.append(written[at:end].encode())
        at = _BLANKS.match(written, end).end()  # type: ignore[union-attr]
    return found


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
    mapping, records = mapping_of(source, read), records_in(text)
    spark = tool_session("try", SPARK)
    mapping = mapping_of(mapping.source, runnable(spark, Mappings([mapping], [])))
    key = settings.token_key.get_secret_value().encode()
    now = datetime.now(UTC)
    tried = try_records(spark, mapping, [(record, now) for record in records], key)
    shown = [
        each.shown() | {"sentences": [explained(record, reason) for reason in each.problems]}
        for record, each in zip(records, tried, strict=True)
    ]
    return json.dumps(shown, ensure_ascii=False)


def main() -> int:
    """Answers, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lozenge_upstream.try_records")
    parser.add_argument("stream")
    parser.add_argument("source", nargs="?", default="", help="Of one of its mappings.")
    given = parser.parse_args()
    return print_answer(lambda: answer(given.stream, given.source, sys.stdin.buffer.read(), UpstreamSettings.load()))


if __name__ == "__main__":
    sys.exit(main())

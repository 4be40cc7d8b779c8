"""`python -m lozenge_upstream.try_records SOURCE < records`: what upstream would make of raw records, as JSON.

Each line is a record, unless the first line alone is no JSON: then the whole input is one. Nothing is written, and no
broker is needed. The mapping is one of the package, or of the folder that `LOZENGE_UPSTREAM_MAPPINGS` names. Exit
codes: 0 answered, 1 failed, 2 there is no such mapping, or it is wrong.
"""

import argparse
import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime

from lozenge.errors import LozengeError, UsageError
from lozenge.host.tool_host import tool_session
from lozenge_upstream.normalise import mapping_files
from lozenge_upstream.normalise.mapping import Mapping
from lozenge_upstream.normalise.mapping_check import runnable
from lozenge_upstream.normalise.mapping_files import Mappings, wrong_mappings
from lozenge_upstream.normalise.tried_record import try_records
from lozenge_upstream.settings import UpstreamSettings
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
    """The mapping of that source. Raises ConfigError if it is wrong, UsageError if there is none."""
    for mapping in read.usable:
        if mapping.source == source:
            return mapping
    if refused := [each for each in read.refused if source in (each.name, each.name.removesuffix(".toml"))]:
        raise wrong_mappings(refused)
    known = ", ".join(sorted(mapping.source for mapping in read.usable))
    raise UsageError(
        f"trying records of {source}: there is no mapping of that source",
        hint=f"there are {known}; LOZENGE_UPSTREAM_MAPPINGS names a folder of further ones",
    )


def answer(source: str, text: bytes, settings: UpstreamSettings) -> str:
    """The JSON of what becomes of each record. Raises ConfigError, UsageError, SparkGone, ToolchainError."""
    mapping = mapping_of(source, mapping_files.read(settings.mappings))
    spark = tool_session("try", SPARK)
    mapping = mapping_of(source, runnable(spark, Mappings([mapping], [])))
    key = settings.token_key.get_secret_value().encode()
    tried = try_records(spark, mapping, records_in(text), key, datetime.now(UTC))
    return json.dumps([asdict(each) for each in tried], ensure_ascii=False)


def main() -> int:
    """Answers, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lozenge_upstream.try_records")
    parser.add_argument("source", help="The source of a mapping.")
    source: str = parser.parse_args().source
    try:
        print(answer(source, sys.stdin.buffer.read(), UpstreamSettings.load()))
    except LozengeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

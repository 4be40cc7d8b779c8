"""The program that the four commands share: arguments, the detector, JSON lines, errors and exit codes."""

import argparse
import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from lozenge.detector.loader import LoadedDetector, find
from lozenge.errors import LozengeError
from lozenge.process import logging
from lozenge.process.shutdown import stopped_by_signals
from lozenge.process.standard_output import for_results
from lozenge.spark.internals.python_api import read_types_without_session

T = TypeVar("T")


def main(
    name: str,
    description: str | None,
    results: Callable[[LoadedDetector, argparse.Namespace], Iterable[Mapping[str, Any]]],
    add_arguments: Callable[[argparse.ArgumentParser], None] = lambda _: None,
) -> int:
    """Runs `python -m lozenge.job.tools.<name>`: prints each result as one JSON object; returns the exit code."""
    parser = argparse.ArgumentParser(prog=f"python -m lozenge.job.tools.{name}", description=description)
    parser.add_argument("which", nargs="?", help="name of an installed detector, or its folder")
    add_arguments(parser)
    given = parser.parse_args()
    logging.configure(name)
    read_types_without_session()
    try:
        with for_results() as output:
            for result in results(find(given.which), given):
                print(json.dumps(result), file=output, flush=True)
    except LozengeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def until_stopped(steps: Iterable[T], doing: str) -> Iterator[T]:
    """The steps, each of them one transaction. SIGTERM and SIGINT end it between two of them."""
    stop = threading.Event()
    with stopped_by_signals(stop.set, doing):
        for step in steps:
            yield step
            if stop.is_set():
                break

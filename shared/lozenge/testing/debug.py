"""`python -m lozenge.testing.debug FOLDER`: runs the detector in a folder on events from standard input.

Standard input is a JSON array of partial events or dead letters, as for `run`. Prints one JSON object with the `alerts`
and the `dead_letters`. It needs no broker. A fold begins without state.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from lozenge.detector.loader import from_folder
from lozenge.errors import LozengeError
from lozenge.process import logging
from lozenge.process.shutdown import end
from lozenge.process.standard_output import for_results
from lozenge.spark.internals.python_api import read_types_without_session
from lozenge.testing.runner import run


def main() -> int:
    """Runs the command; returns the exit code."""
    logging.configure("debug")
    read_types_without_session()
    try:
        with for_results() as output:
            result = run(from_folder(Path(sys.argv[1]).resolve()), json.load(sys.stdin))
            found = {"alerts": list(map(asdict, result)), "dead_letters": list(map(asdict, result.dead_letters))}
            print(json.dumps(found, default=str), file=output, flush=True)
    except LozengeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    end(main())

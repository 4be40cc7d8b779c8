"""`python -m lozenge_upstream.tables FOLDER`: loads the table that FOLDER declares until it is stopped.

It is configured by `LOZENGE_KAFKA_*` and by the variables that `table.toml` names. Exit codes: 0 stopped by SIGTERM or
SIGINT, 1 failed, 2 settings or the declaration are wrong, 3 no broker.
"""

import argparse
from pathlib import Path

from lozenge.errors import LozengeError
from lozenge.kafka.settings import KafkaSettings
from lozenge.process import logging
from lozenge.process.shutdown import end
from lozenge_upstream.tables.service import run


def main() -> int:
    """Loads, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lozenge_upstream.tables", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    logging.configure("tables")
    try:
        run(folder, KafkaSettings.load())
    except LozengeError as error:
        return logging.report(error)
    return 0


if __name__ == "__main__":
    end(main())

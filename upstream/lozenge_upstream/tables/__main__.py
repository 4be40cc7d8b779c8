"""`python -m lozenge_upstream.tables NAME`: loads the table NAME as it is deployed until it is stopped.

It is configured by `LOZENGE_KAFKA_*` and by the variables that its declaration names. Exit codes: 0 stopped by SIGTERM
or SIGINT, 1 failed, 2 settings or the declaration are wrong, or it is not deployed, 3 no broker.
"""

import argparse

from lozenge.errors import LozengeError
from lozenge.kafka.settings import KafkaSettings
from lozenge.process import logging
from lozenge.process.shutdown import end
from lozenge_upstream.tables.service import run


def main() -> int:
    """Loads, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lozenge_upstream.tables", description=__doc__)
    parser.add_argument("name")
    name = parser.parse_args().name
    logging.configure("tables")
    try:
        run(name, KafkaSettings.load())
    except LozengeError as error:
        return logging.report(error)
    return 0


if __name__ == "__main__":
    end(main())

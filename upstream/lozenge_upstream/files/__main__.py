"""`python -m lozenge_upstream.files`: copies the files of one file source until it is stopped.

It is configured by environment variables: `LOZENGE_FILES_*` (see `settings.py`) and
`LOZENGE_KAFKA_*`. Exit codes: 0 stopped by SIGTERM or SIGINT, 1 failed, 2 settings or the declaration are wrong,
3 no broker.
"""

import gc

from lozenge.errors import LozengeError
from lozenge.kafka.settings import KafkaSettings
from lozenge.process import logging
from lozenge.process.env_settings import load
from lozenge.process.shutdown import end
from lozenge_upstream.files.service import run
from lozenge_upstream.files.settings import FilesSettings

OBJECTS = 100_000
"""The rows of a piece are so many objects, none in a cycle: to look for cycles more often costs more than to copy."""


def main() -> int:
    """Copies, and returns the exit code."""
    gc.set_threshold(OBJECTS)
    logging.configure("files")
    try:
        settings, kafka = load(FilesSettings, KafkaSettings)
        run(settings, kafka)
    except LozengeError as error:
        return logging.report(error)
    return 0


if __name__ == "__main__":
    end(main())

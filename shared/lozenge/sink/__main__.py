"""`python -m lozenge.sink NAME`: runs the sink NAME as it is deployed until it is stopped.

It is configured by environment variables: `LOZENGE_SINK_*` (see `settings.py`), `LOZENGE_ARCHIVE` and
`LOZENGE_KAFKA_*`. Exit codes: 0 stopped by SIGTERM or SIGINT, 1 failed, 2 settings or the declaration are wrong, or
it is not deployed, 3 no broker, or no server of a cache.
"""

import argparse

from lozenge.apps import sink_app
from lozenge.errors import LozengeError, first_line
from lozenge.kafka.settings import KafkaSettings
from lozenge.process import logging
from lozenge.process.env_settings import load
from lozenge.process.shutdown import end
from lozenge.sink.service import run
from lozenge.sink.settings import SinkSettings


def main() -> int:
    """Runs the sink and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lozenge.sink", description=__doc__)
    parser.add_argument("name")
    given = parser.parse_args()
    logging.configure("sink")
    try:
        settings, kafka = load(SinkSettings, KafkaSettings)
        run(sink_app(given.name), settings, kafka)
    except LozengeError as error:
        return logging.report(error)
    except Exception as error:  # unexpected: the log has the whole stack
        logging.logger().critical(f"the sink failed: {type(error).__name__}: {first_line(error)}", exc_info=True)
        return 1
    return 0


if __name__ == "__main__":
    end(main())

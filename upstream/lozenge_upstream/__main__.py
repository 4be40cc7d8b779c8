"""`python -m lozenge_upstream`: normalises until it is stopped.

It is configured by environment variables: `LOZENGE_UPSTREAM_*` (see `settings.py`) and
`LOZENGE_KAFKA_*`. Exit codes: 0 stopped by SIGTERM or SIGINT, 1 failed, 2 settings or a mapping are
wrong, 3 no broker.
"""

from lozenge.apps import UPSTREAM
from lozenge.errors import LozengeError
from lozenge.kafka.settings import KafkaSettings
from lozenge.process import logging
from lozenge.process.env_settings import load
from lozenge.process.shutdown import end
from lozenge_upstream.service import run
from lozenge_upstream.settings import UpstreamSettings


def main() -> int:
    """Runs upstream and returns the exit code."""
    logging.configure(UPSTREAM)
    try:
        settings, kafka = load(UpstreamSettings, KafkaSettings)
        run(settings, kafka)
    except LozengeError as error:
        return logging.report(error)
    return 0


if __name__ == "__main__":
    end(main())

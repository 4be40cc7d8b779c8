"""`python -m lozenge_downstream`: runs the notifier until SIGTERM or SIGINT."""

import signal
import sys
import threading

from lozenge import logs
from lozenge.environment import load
from lozenge.errors import LozengeError
from lozenge.kafka import KafkaSettings
from lozenge_downstream.job import Notifier
from lozenge_downstream.render import APP
from lozenge_downstream.settings import Settings


def main() -> int:
    """The exit code: 0 stopped, 1 failed, 2 configuration, 3 no broker or no store."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    logs.configure(APP)
    try:
        settings, kafka = load(Settings, KafkaSettings)
        logs.configure(APP, instance=settings.instance)
        Notifier(settings, kafka).run(stop)
    except LozengeError as error:
        logs.logger().error(error.message, hint=error.hint, kind=type(error).__name__)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

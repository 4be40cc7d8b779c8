"""`python -m lozenge_downstream`: runs the notifier until SIGTERM or SIGINT."""

from lozenge.apps import DOWNSTREAM
from lozenge.errors import LozengeError
from lozenge.kafka.settings import KafkaSettings
from lozenge.process import logging
from lozenge.process.env_settings import load
from lozenge.process.shutdown import StopSignal, end
from lozenge_downstream.service import Notifier
from lozenge_downstream.settings import NotifierSettings
from lozenge_downstream.timing import DEFAULT, NotifierTiming


def main(timing: NotifierTiming = DEFAULT) -> int:
    """The exit code: 0 stopped, 1 failed, 2 configuration, 3 no broker or no store."""
    stop = StopSignal()
    logging.configure(DOWNSTREAM)
    try:
        settings, kafka = load(NotifierSettings, KafkaSettings)
        logging.configure(DOWNSTREAM, instance=settings.instance)
        Notifier(settings, kafka, timing).run(stop)
    except LozengeError as error:
        logging.logger().error(error.message, hint=error.hint, kind=type(error).__name__)
        return error.exit_code
    return 0


if __name__ == "__main__":
    end(main())  # a consumer that was not closed would wait for its last rebalance for ever

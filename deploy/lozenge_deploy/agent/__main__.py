"""`python -m lozenge_deploy.agent [FOLDER]`: keeps every detector running as deployed; see `lozenge deploy`.

FOLDER holds the jobs' files (`.lozenge/jobs`). SIGTERM and SIGINT end the agent; the jobs keep running. Exit
codes: 0 after a signal, 2 for wrong settings, 3 if the broker does not answer.
"""

import sys
from pathlib import Path

from lozenge.errors import LozengeError
from lozenge.kafka.settings import KafkaSettings
from lozenge.process import logging
from lozenge.process.shutdown import StopSignal, end
from lozenge_deploy.agent.agent import Agent
from lozenge_deploy.control.leader_election import TIMING, LeaseTiming

FOLDER = Path(".lozenge/jobs")


def main(timing: LeaseTiming = TIMING, *, first_host: bool = True) -> int:
    """Runs until a signal; returns the exit code. `first_host` as for `Agent`."""
    stop = StopSignal()
    logging.configure("agent")
    try:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
        agent = Agent(KafkaSettings.load(), folder, timing=timing, first_host=first_host)
    except LozengeError as error:
        logging.logger().error(error.message, hint=error.hint)
        return error.exit_code
    agent.run(stop)
    return 0


if __name__ == "__main__":
    end(main())  # otherwise the process would wait for an environment that is being built

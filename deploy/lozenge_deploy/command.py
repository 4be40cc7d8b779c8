"""`lozenge`: the command from its first moment on.

Its modules take most of a second to import. Ctrl-C meanwhile ends the process by the signal, without a stack.
What runs afterwards handles Ctrl-C itself; where nothing does, the exit code is 130.
"""

import signal
import sys

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C has ended."""


def main() -> None:
    """Imports the command and runs it; see `lozenge_deploy.cli.__main__`."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from lozenge_deploy.cli.__main__ import main as run

    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)

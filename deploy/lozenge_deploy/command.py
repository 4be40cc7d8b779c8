"""`lozenge`: the command from its first moment on.

Its modules take most of a second to import. Ctrl-C meanwhile ends the process by the signal, without a stack.
"""

import signal


def main() -> None:
    """Imports the command and runs it; see `lozenge_deploy.cli.__main__`."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from lozenge_deploy.cli.__main__ import main as run

    signal.signal(signal.SIGINT, signal.default_int_handler)
    run()

"""Several processes of a system as one: it ends when one of them does, and then all do."""

import shlex
from collections.abc import Sequence

# a shell's trap runs only between commands, and `wait` is the one that a signal ends
_SCRIPT = """
trap : TERM
{commands}
wait -n
kill $(jobs -p) 2>/dev/null
wait
exit 1
"""


def together(commands: Sequence[Sequence[str]]) -> list[str]:
    """The command that runs all of them side by side, each with its end of the log."""
    return ["bash", "-c", _SCRIPT.format(commands="\n".join(f"{shlex.join(command)} &" for command in commands))]

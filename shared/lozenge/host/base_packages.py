"""The packages of an environment but for the detector's own: where they are equal, processes may be forks of one."""

import os
import sys
from pathlib import Path

FILE = "base"
"""The file in an environment that says it, written by who made the environment."""
SETTING = "LOZENGE_BASE"
"""The variable that says it for an environment without the file."""


def base_packages() -> str:
    """Their digest in the environment of this process; "" if nobody wrote it down."""
    try:
        return Path(sys.prefix, FILE).read_text("utf-8")
    except OSError:
        return os.environ.get(SETTING, "")

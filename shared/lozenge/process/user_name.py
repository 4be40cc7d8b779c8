"""Who runs this process."""

import getpass
import os


def user_name() -> str:
    """The user's name; the number of a user without one, as in a container that runs as an arbitrary user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())

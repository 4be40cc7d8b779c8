"""Which names a detector can have."""

import keyword
import re
import sys
from importlib.util import find_spec

APPS = ("upstream", "downstream", "agent", "feed")
"""Names that metrics and logs have for the platform's own parts."""
LONGEST = 64
"""Characters of the longest name: with prefix, kind and release a topic's name stays below Kafka's 249."""
_OF_TESTS = ("conftest", "tests")


def name_problem(name: str) -> str:
    """Why no detector can have this name, which is also that of its package and topics; "" if one can."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        return "a name is a lower-case letter, then lower-case letters, digits and underscores"
    if len(name) > LONGEST:
        return f"a name has at most {LONGEST} characters, this one has {len(name)}"
    if keyword.iskeyword(name) or name in sys.stdlib_module_names:
        return "Python has that name for something else"
    if name in _OF_TESTS:
        return "pytest has that name for something else"
    if name in APPS or name.startswith("lozenge"):
        return "the platform has that name for something else"
    spec = find_spec(name)
    installed = spec is not None and "site-packages" in (spec.origin or "")
    return "a package that detectors use has that name" if installed else ""

"""Which names a detector can have, and which ones its environment has."""

import keyword
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from importlib.util import find_spec

from packaging.requirements import Requirement

from lozenge_deploy.releases.build import CHECKOUT, RUNTIME, normalised

APPS = ("upstream", "downstream", "agent", "feed", "spark-host")
"""Names that metrics and logs have for the platform's own parts; normalisers have a hyphen in theirs."""
LONGEST = 64
"""Characters of the longest name: with prefix, kind and release a topic's name stays below Kafka's 249."""
_OF_TESTS = ("conftest", "tests")
_ALSO_OF_PYTHON = ("test",)
"""A package of Python that its list of modules lacks."""


def name_problem(name: str) -> str:
    """Why no detector can have this name, which is also that of its package and topics; "" if one can."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        return "a name is a lower-case letter, then lower-case letters, digits and underscores"
    if name.endswith("_"):
        return "no distribution has a name that ends with an underscore"
    if len(name) > LONGEST:
        return f"a name has at most {LONGEST} characters, this one has {len(name)}"
    if keyword.iskeyword(name) or name in (*sys.stdlib_module_names, *_ALSO_OF_PYTHON):
        return "Python has that name for something else"
    if name in _OF_TESTS:
        return "pytest has that name for something else"
    if name in APPS or name.startswith("lozenge"):
        return "the platform has that name for something else"
    spec = find_spec(name)
    installed = spec is not None and "site-packages" in (spec.origin or "")
    installed |= re.search(rf"^{normalised(name)}==", RUNTIME.read_text("utf-8"), re.MULTILINE) is not None
    return "a package that detectors use has that name" if installed else ""


@cache
def job_modules() -> frozenset[str]:
    """The top-level modules that the library brings into the environment of every detector, as installed here."""
    library = tomllib.loads((CHECKOUT / "shared" / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*map(Requirement, [*library["dependencies"], *library["optional-dependencies"]["job"]])]
    found = {normalised(library["name"])}
    while wanted:
        required = wanted.pop()
        if normalised(required.name) in found or (required.marker and not required.marker.evaluate({"extra": ""})):
            continue
        found.add(normalised(required.name))
        try:
            wanted += map(Requirement, distribution(required.name).requires or ())
        except PackageNotFoundError:
            continue
    owners = packages_distributions().items()
    return frozenset(module for module, names in owners if found & {*map(normalised, names)})

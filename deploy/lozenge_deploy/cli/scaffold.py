"""Writing the folder of a new detector from the templates beside this module."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template

from lozenge.errors import UsageError

TEMPLATES = Path(__file__).with_name("templates")

_ABOUT: Mapping[str, Mapping[str, str]] = {
    "rule": {
        "description": "Flags a payment above a limit.",
        "fires": "`amount` above `limit`, approved or not. One alert per payment.",
        "misses": "What is spread over several smaller payments.",
        "settings": "| `limit` | 500 | the largest amount that raises nothing |",
        "declared": "",
    },
    "stateful": {
        "description": "Flags a card that pays in two countries within minutes.",
        "fires": "Two payments in person of one card, in two countries, at most `within` apart.",
        "misses": "Payments further apart than that, and those of the person's other cards.",
        "settings": "| `within` | 5m | the longest time between the two payments |",
        "declared": "",
    },
    "aggregate": {
        "description": "Flags a card that is declined several times within minutes.",
        "fires": "`limit` declined payments of one card within one `window`. One alert per card and window.",
        "misses": "What the edge of a window cuts into two halves, and events more than 10 minutes late.",
        "settings": "| `window` | 10m | how long is counted |\n| `limit` | 3 | declines that raise an alert |",
        "declared": 'lateness = "10m"\nwindow = "10m"\n',
    },
}


def write(detectors: Path, name: str, kind: str, owner: str) -> Iterator[Path]:
    """Writes a detector of `kind` into a new folder of `detectors`, yielding each file; raises UsageError."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UsageError(f"making detector {name}: a name has lower-case letters, digits and underscores only")
    folder = detectors / name
    if folder.exists():
        raise UsageError(f"making detector {name}: {folder} is there already", hint="choose another name")
    title = name.replace("_", " ").capitalize()
    words = {"name": name, "kind": kind, "owner": owner, "title": title, "class_name": _class_name(name)}
    words |= _ABOUT[kind]
    folder.mkdir()
    for target, template in {
        f"{name}.py": f"{kind}/module.py",
        f"test_{name}.py": f"{kind}/test.py",
        "README.md": "common/README.md",
        "pyproject.toml": "common/pyproject.toml",
    }.items():
        text = Template((TEMPLATES / f"{template}.tmpl").read_text("utf-8")).substitute(words)
        (folder / target).write_text(text.rstrip() + "\n", encoding="utf-8")
        yield folder / target


def _class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))

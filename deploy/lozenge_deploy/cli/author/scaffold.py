"""Writes the folder of a new detector from the files in `templates/`."""

import re
from collections.abc import Mapping
from pathlib import Path
from string import Template

from lozenge.errors import UsageError
from lozenge_deploy.releases.lint.names import name_problem

TEMPLATES = Path(__file__).with_name("templates")

_ABOUT: Mapping[str, Mapping[str, str]] = {
    "rule": {
        "description": "Flags a payment above a limit.",
        "fires": "`amount` above `limit`, approved or not. One alert per payment.",
        "misses": "A large sum that is divided into several smaller payments.",
        "settings": "| `limit` | 500 | the largest amount that raises no alert |",
        "declared": "",
    },
    "stateful": {
        "description": "Flags a card that pays in two countries within minutes.",
        "fires": "Two payments in person of one card, in two countries, at most `within` apart.",
        "misses": "Payments that are further apart, and payments with the person's other cards.",
        "settings": "| `within` | 5m | the longest time between the two payments |",
        "declared": "",
    },
    "aggregate": {
        "description": "Flags a card that is declined several times within minutes.",
        "fires": "`limit` declined payments of one card within one `window`. One alert per card and window.",
        "misses": "Declines that the edge of a window divides, and events more than 10 minutes late.",
        "settings": "| `window` | 10m | length of the window |\n| `limit` | 3 | declines that raise an alert |",
        "declared": 'lateness = "10m"\nwindow = "10m"\n',
    },
}


def write(detectors: Path, name: str, kind: str, owner: str) -> dict[Path, str]:
    """Writes the files of `texts` and returns them; raises as `texts` does."""
    files = texts(detectors, name, kind, owner)
    (detectors / name).mkdir()
    for file, text in files.items():
        file.write_text(text, encoding="utf-8")
    return files


def texts(detectors: Path, name: str, kind: str, owner: str) -> dict[Path, str]:
    """The text of each file of a new detector of `kind` in a new folder of `detectors`; raises UsageError."""
    if problem := name_problem(name):
        raise UsageError(
            f"making detector {name}: {problem}", hint="choose another, such as `lozenge new many_refunds`"
        )
    folder = detectors / name
    if folder.exists():
        raise UsageError(f"making detector {name}: {folder} exists already", hint="choose another name")
    title = name.replace("_", " ").capitalize()
    words = {"name": name, "kind": kind, "owner": owner, "title": title, "class_name": _class_name(name, kind)}
    words |= _ABOUT[kind]
    templates = {
        f"{name}.py": f"{kind}/module.py",
        f"test_{name}.py": f"{kind}/test.py",
        "README.md": "common/README.md",
        "pyproject.toml": "common/pyproject.toml",
    }
    return {folder / file: _filled(template, words) for file, template in templates.items()}


def _filled(template: str, words: Mapping[str, str]) -> str:
    text = Template((TEMPLATES / f"{template}.tmpl").read_text("utf-8")).substitute(words)
    return text.rstrip() + "\n"


def _class_name(name: str, kind: str) -> str:
    """The name of the settings class; it gets a suffix if the template uses the name for something else."""
    words = "".join(part.capitalize() for part in name.split("_"))
    used = re.findall(r"\w+", (TEMPLATES / kind / "module.py.tmpl").read_text("utf-8"))
    return f"{words}Settings" if words in used else words

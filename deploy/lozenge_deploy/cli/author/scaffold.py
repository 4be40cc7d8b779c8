"""Writes the folder of a new detector from the files in `templates/`."""

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

from pydantic import ValidationError

from lozenge.contracts.detector_kind import DetectorKind
from lozenge.contracts.display_text import is_blank
from lozenge.detector.tables.csv_table import separator_in
from lozenge.detector.tables.declared_table import Table
from lozenge.detector.tables.reference_tables import problems
from lozenge.errors import UsageError
from lozenge.streams.definition import StreamDefinition
from lozenge_deploy.releases.lint.files import text_of
from lozenge_deploy.releases.lint.names import name_problem

TEMPLATES = Path(__file__).with_name("templates")
_MERGED = "merged"
"""The template of a stateful detector of several streams; the others are named after their kind."""

_ABOUT: Mapping[str, Mapping[str, str]] = {
    "rule": {
        "description": "Flags a payment above a limit.",
        "fires": "`amount` above `limit`, approved or not. One alert per payment.",
        "misses": "A large sum that is divided into several smaller payments.",
        "settings": "| `limit` | 500 | the largest amount that raises no alert |",
        "declared": "",
    },
    "stateful": {
        "description": "Flags a $key that pays in two countries within minutes.",
        "fires": "Two payments in person of one $key, in two countries, at most `within` apart.",
        "misses": "Payments that are further apart, and payments with the person's other cards.",
        "settings": "| `within` | 5m | the longest time between the two payments |",
        "declared": "",
    },
    "aggregate": {
        "description": "Flags a $key that is declined several times within minutes.",
        "fires": "`limit` declined payments of one $key within one `window`. One alert per $key and window.",
        "misses": "Declines that the edge of a window divides, and events more than 10 minutes late.",
        "settings": "| `window` | 10m | length of the window |\n| `limit` | 3 | declines that raise an alert |",
        "declared": 'lateness = "10m"\nwindow = "10m"\n',
    },
    _MERGED: {
        "description": "Flags a $key with $second within minutes after $first.",
        "fires": "An event of $second at most `within` after one of $first, of one $key.",
        "misses": "Pairs that are further apart, or come the other way round.",
        "settings": "| `within` | 5m | the longest time between the two |",
        "declared": "",
    },
}


def write(
    detectors: Path,
    name: str,
    kind: str,
    owner: str,
    stream: StreamDefinition,
    *,
    key: str = "",
    tables: Sequence[Path] = (),
) -> dict[Path, bytes]:
    """Writes the files of `contents` and returns them; raises as `contents` does."""
    files = contents(detectors, name, kind, owner, stream, key=key, tables=tables)
    (detectors / name).mkdir()
    for file, content in files.items():
        file.write_bytes(content)
    return files


def contents(
    detectors: Path,
    name: str,
    kind: str,
    owner: str,
    stream: StreamDefinition,
    *,
    key: str = "",
    tables: Sequence[Path] = (),
) -> dict[Path, bytes]:
    """The content of each file of a new detector of `kind` in a new folder of `detectors`; raises UsageError.

    It reads `stream`, for a stateful one also merged of several; `key` is one of its keys. `tables` are CSV or Parquet
    files, which the detector gets a copy of.
    """
    if problem := name_problem(name):
        raise UsageError(
            f"making detector {name}: {problem}", hint="choose another, such as `lozenge new many_refunds`"
        )
    if is_blank(owner) or not owner.isprintable():
        raise UsageError(f"making detector {name}: the owner {owner!r} is no name", hint='write it as --owner "a team"')
    folder = detectors / name
    if folder.exists():
        raise UsageError(f"making detector {name}: {folder} exists already", hint="choose another name")
    title = name.replace("_", " ").capitalize()
    if stream.members and kind != DetectorKind.STATEFUL:
        raise UsageError(
            f"making detector {name}: a {kind} of several streams has no template",
            hint="add --kind stateful: what events of several streams say together is a fold",
        )
    if key and key not in stream.keys:
        raise UsageError(
            f"making detector {name}: the stream {stream.name} has no key {key}", hint=f"take {', '.join(stream.keys)}"
        )
    template = _MERGED if stream.members else kind
    entity = {"key": stream.key(key), "key_column": stream.column(key)}
    entity |= {word: each.name for word, each in zip(("first", "second"), stream.members, strict=False)}
    words = {"name": name, "kind": kind, "owner": owner, "title": title, "class_name": _class_name(name, template)}
    words |= {"owner_text": _quoted(owner)} | entity
    words |= {word: Template(text).substitute(entity) for word, text in _ABOUT[template].items()}
    words["declared"] = f"{_reads(stream, key)}{words['declared']}"
    words["declared"] += "".join(f"\n{_declared(table)}" for table in tables)
    templates = {
        f"{name}.py": f"{template}/module.py",
        f"test_{name}.py": f"{template}/test.py",
        "README.md": "common/README.md",
        "pyproject.toml": "common/pyproject.toml",
    }
    files = {folder / file: _filled(template, words).encode() for file, template in templates.items()}
    for table in tables:
        if folder / table.name in files or table.stem in [other.stem for other in tables if other is not table]:
            raise UsageError(f"making detector {name}: {table.name} is there twice", hint="give each file its own name")
        files[folder / table.name] = table.read_bytes()
    return files


def _reads(stream: StreamDefinition, key: str) -> str:
    """The declaration of the stream, or of several, and of the key unless it is the first."""
    if stream.members:
        names = ", ".join(_quoted(each.name) for each in stream.members)
        return f'streams = [{names}]\nkey = "{stream.primary}"\n'
    of_key = "" if stream.key(key) == stream.primary else f'key = "{key}"\n'
    return f'stream = "{stream.name}"\n{of_key}'


def _declared(table: Path) -> str:
    """The declaration of a table; every column of a CSV file is a string until somebody says better."""
    try:
        header = text_of(table).partition("\n")[0] if table.suffix.lower() == ".csv" else None
        table.open("rb").close()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"reading table {table}: {reason}", hint="name a CSV or Parquet file") from error
    columns = ""
    try:
        columns = _columns(header) if header is not None else ""
        found = problems(Table(path=table.name, columns=columns, may_be_empty=True), table.parent)
    except ValidationError as error:
        found = tuple(each["msg"] for each in error.errors())
    except ValueError as error:
        found = (str(error),)
    if found:
        raise UsageError(f"reading table {table}: {'; '.join(found)}", hint="name a CSV or Parquet file")
    lines = [f"[tool.lozenge.tables.{_quoted(table.stem)}]", f"path = {_quoted(table.name)}"]
    return "\n".join([*lines, *([f"columns = {_quoted(columns)}"] if columns else []), ""])


def _columns(header: str) -> str:
    """The declaration of the columns that a header names, each a string; raises ValueError if it names none."""
    names = next(csv.reader([header]), [])
    if not names:
        raise ValueError("its header names no column")
    if len(names) == 1 and (other := separator_in(names[0])):
        raise ValueError(f"commas separate columns, not {other!r}")
    return ", ".join(f"{_column(name)} string" for name in names)


def _column(name: str) -> str:
    """The name as DDL takes it."""
    escaped = name.replace("`", "``")
    return name if re.fullmatch("[A-Za-z_]\\w*", name, re.ASCII) else f"`{escaped}`"


def _quoted(text: str) -> str:
    """A string of TOML, which takes those of JSON."""
    return json.dumps(text, ensure_ascii=False)


def _filled(template: str, words: Mapping[str, str]) -> str:
    text = Template((TEMPLATES / f"{template}.tmpl").read_text("utf-8")).substitute(words)
    return text.rstrip() + "\n"


def _class_name(name: str, kind: str) -> str:
    """The name of the settings class; it gets a suffix if the template uses the name for something else."""
    words = "".join(part.capitalize() for part in name.split("_"))
    used = re.findall(r"\w+", (TEMPLATES / kind / "module.py.tmpl").read_text("utf-8"))
    return f"{words}Settings" if words in used else words

"""Writes the folder of a new detector from the files in `templates/`."""

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

from pydantic import ValidationError

from lozenge import validation
from lozenge.contracts.detector_kind import DetectorKind
from lozenge.contracts.display_text import is_blank
from lozenge.detector.tables.csv_table import separator_in
from lozenge.detector.tables.declared_table import Table
from lozenge.detector.tables.reference_tables import problems
from lozenge.errors import UsageError
from lozenge.streams.definition import StreamDefinition
from lozenge_deploy.cli.author.template_choice import choose_template
from lozenge_deploy.releases.lint.files import text_of
from lozenge_deploy.releases.lint.names import name_problem

TEMPLATES = Path(__file__).with_name("templates")
_DECLARED = {"aggregate": 'lateness = "10m"\nwindow = "10m"\n'}
"""What a kind declares besides its stream and its key."""


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

    It reads `stream`, for a stateful one also merged of several, or of alerts; `key` is one of its keys. `tables` are
    CSV or Parquet files, which the detector gets a copy of.
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
    chosen = choose_template(kind, stream, key)
    words = {"name": name, "kind": kind, "owner": owner, "owner_text": _quoted(owner), "title": title, **chosen.words}
    about = {word: getattr(chosen, word) for word in ("description", "fires", "misses", "settings")}
    words |= {word: Template(text).substitute(chosen.words) for word, text in about.items()}
    words["class_name"] = _class_name(name, chosen.folder)
    words["declared"] = f"{_reads(stream, key)}{_DECLARED.get(kind, '')}"
    words["declared"] += "".join(f"\n{_declared(table)}" for table in tables)
    templates = {
        f"{name}.py": f"{chosen.folder}/module.py",
        f"test_{name}.py": f"{chosen.folder}/test.py",
        "README.md": "common/README.md",
        "pyproject.toml": "common/pyproject.toml",
    }
    files = {folder / file: _filled(source, words).encode() for file, source in templates.items()}
    for table in tables:
        if folder / table.name in files or table.stem in [other.stem for other in tables if other is not table]:
            raise UsageError(f"making detector {name}: {table.name} is there twice", hint="give each file its own name")
        files[folder / table.name] = table.read_bytes()
    return files


def _reads(stream: StreamDefinition, key: str) -> str:
    """The declaration of the input, and of the key unless it is the first of a stream."""
    if stream.alerts_of:
        return f'alerts_of = "{stream.alerts_of}"\nkey = "{stream.primary}"\n'
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
        found = tuple(each["msg"] for each in validation.problems(error))
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


def _class_name(name: str, folder: str) -> str:
    """The name of the settings class; it gets a suffix if the template uses the name for something else."""
    words = "".join(part.capitalize() for part in name.split("_"))
    used = re.findall(r"\w+", (TEMPLATES / folder / "module.py.tmpl").read_text("utf-8"))
    return f"{words}Settings" if words in used else words

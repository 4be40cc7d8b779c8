"""What another release changes, as rows of field, current, new: files, setting defaults, dependencies, declaration."""

import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from typing import Any

from lozenge.detector.manifest import Manifest
from lozenge_deploy.releases.release import Release

Rows = list[dict[str, Any]]
RESUMES = "resumes at committed offsets; no event is skipped or processed twice"
"""What happens to the offsets where one release replaces another."""
_LARGEST_TEXT = 1_000_000


def differences(old: Release | None, new: Release) -> Rows:
    """What differs between two releases of a detector; only the name if there is no old one."""
    if old is None or old.digest == new.digest:
        return [_row("release", old.name if old else None, new.name)]
    return [
        _row("release", old.name, new.name),
        *_files(_contents(old.wheel.content, old.detector), _contents(new.wheel.content, new.detector)),
        *_changed("default of ", old.settings, new.settings),
        *_changed("", _pins(old.lock), _pins(new.lock)),
        *([] if old.library == new.library else [_row("library", old.library, new.library)]),
        *_changed("declared ", _flat(old.declaration), _flat(new.declaration)),
    ]


def settings_rows(current: Mapping[str, Any], new: Mapping[str, Any]) -> Rows:
    """How the settings change that differ from their defaults; None is the default."""
    return _changed("setting ", current, new)


def offsets_row(consequence: str) -> dict[str, Any]:
    """What happens to the offsets."""
    return _row("offsets", None, consequence)


def state_row(consequence: str | None) -> Rows:
    """What happens to the state; no row for a detector without state."""
    return [_row("state", None, consequence)] if consequence else []


def readers_row(names: Sequence[str], consequence: str) -> Rows:
    """What happens to the detectors that read its alerts; no row if there are none."""
    return [_row("read by", ", ".join(sorted(names)), consequence)] if names else []


def unchecked_row(reason: str) -> Rows:
    """That the settings are checked by the job alone, and why; no row without a reason."""
    new = f"by the running job, before they replace the present ones; not here: {reason}"
    return [_row("check of settings", None, new)] if reason else []


def _row(field: str, current: Any, new: Any) -> dict[str, Any]:
    return {"field": field, "current": current, "new": new}


def _changed(prefix: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Rows:
    names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return [_row(f"{prefix}{name}", old.get(name), new.get(name)) for name in names]


def _flat(declaration: Manifest) -> dict[str, Any]:
    """A declaration with nested names flattened, such as `resources.cores`."""
    found: dict[str, Any] = {}
    for name, value in declaration.model_dump(mode="json").items():
        found |= {f"{name}.{key}": one for key, one in value.items()} if isinstance(value, dict) else {name: value}
    return found


def _pins(lock: str) -> dict[str, str]:
    """The version of each distribution that a lock names."""
    lines = (line.split(" ")[0] for line in lock.splitlines() if "==" in line and not line.startswith((" ", "#")))
    return dict(line.split("==", 1) for line in lines)


def _contents(wheel: bytes, detector: str) -> dict[str, bytes]:
    """Each file of a wheel by its path in the detector's folder, without the wheel's own metadata."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        return {name.removeprefix(f"{detector}/"): archive.read(name) for name in names}


def _files(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> Iterator[dict[str, Any]]:
    """How many lines of each file are removed and added; of a file that is no text, its sizes."""
    for file in sorted(old.keys() | new.keys()):
        before, after = old.get(file), new.get(file)
        if before == after:
            continue
        lines, new_lines = _lines(before), _lines(after)
        if lines is None or new_lines is None:
            yield _row(file, *(None if content is None else f"{len(content)} bytes" for content in (before, after)))
            continue
        difference = list(unified_diff(lines, new_lines, n=0))[2:]
        removed, added = (sum(line.startswith(sign) for line in difference) for sign in "-+")
        yield _row(file, f"-{removed} lines", f"+{added} lines")


def _lines(content: bytes | None) -> list[str] | None:
    """The lines of a text; None for anything else, and for more than a person reads."""
    if content is None:
        return []
    try:
        return content.decode().splitlines() if b"\0" not in content and len(content) <= _LARGEST_TEXT else None
    except UnicodeDecodeError:
        return None

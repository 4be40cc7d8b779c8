"""What another release changes: files, defaults of settings, dependencies, declaration; as rows of what, now, then."""

import io
import zipfile
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from typing import Any

from lozenge.detector.manifest import Manifest
from lozenge_deploy.releases.release import Release

Rows = list[dict[str, Any]]
GOES_ON = "from the group's offsets on; nothing is judged twice or left out"
"""What becomes of the offsets where one release takes over from another."""


def differences(old: Release | None, new: Release) -> Rows:
    """What differs between two releases of a detector; nothing but the name if there is no old one."""
    if old is None or old.digest == new.digest:
        return [{"what": "release", "now": old.name if old else None, "then": new.name}]
    return [
        {"what": "release", "now": old.name, "then": new.name},
        *_files(_texts(old.wheel.content), _texts(new.wheel.content)),
        *_changed("default of ", old.settings, new.settings),
        *_changed("", _pins(old.lock), _pins(new.lock)),
        *([] if old.platform == new.platform else [{"what": "platform", "now": old.platform, "then": new.platform}]),
        *_changed("declared ", _flat(old.declaration), _flat(new.declaration)),
    ]


def settings_rows(now: Mapping[str, Any], then: Mapping[str, Any]) -> Rows:
    """What becomes of the settings that differ from their defaults; None stands for the default."""
    return _changed("setting ", now, then)


def _changed(prefix: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Rows:
    names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return [{"what": f"{prefix}{name}", "now": old.get(name), "then": new.get(name)} for name in names]


def _flat(declaration: Manifest) -> dict[str, Any]:
    """A declaration with `resources.cores` and the like in place of what is nested."""
    found: dict[str, Any] = {}
    for name, value in declaration.model_dump(mode="json").items():
        found |= {f"{name}.{key}": one for key, one in value.items()} if isinstance(value, dict) else {name: value}
    return found


def _pins(lock: str) -> dict[str, str]:
    """The version of each distribution that a lock names."""
    lines = (line.split(" ")[0] for line in lock.splitlines() if "==" in line and not line.startswith((" ", "#")))
    return dict(line.split("==", 1) for line in lines)


def _texts(wheel: bytes) -> dict[str, list[str]]:
    """The lines of the files of a wheel, without what its packaging adds."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        return {name.split("/")[-1]: archive.read(name).decode(errors="replace").splitlines() for name in names}


def _files(old: Mapping[str, list[str]], new: Mapping[str, list[str]]) -> Iterator[dict[str, Any]]:
    """How many lines go and come in every file that differs."""
    for file in sorted(old.keys() | new.keys()):
        difference = list(unified_diff(old.get(file, []), new.get(file, []), n=0))[2:]
        gone, come = (sum(line.startswith(sign) for line in difference) for sign in "-+")
        if gone or come:
            yield {"what": file, "now": f"-{gone} lines", "then": f"+{come} lines"}

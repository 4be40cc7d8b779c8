"""The detectors of a source tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lozenge.contracts.topics import Topics
from lozenge.detector.manifest import Manifest, read
from lozenge.errors import UsageError


@dataclass(frozen=True)
class DetectorFolder:
    """A detector in the source tree."""

    name: str
    version: str
    declaration: Manifest
    folder: Path

    def input(self, topics: Topics) -> str:
        """The canonical topic that it reads."""
        return topics.events_by(self.declaration.key)


def detectors_in(folder: Path) -> list[DetectorFolder]:
    """Every detector below `folder`; raises ConfigError, UsageError if there is none."""
    files = sorted(folder.glob("[a-z]*/pyproject.toml"))
    found = [DetectorFolder(*read(file), file.parent) for file in files]
    if not found:
        raise UsageError(f"looking for detectors: {folder} has none", hint="each is a folder with a pyproject.toml")
    return found


def rekeys_of(detectors: Sequence[DetectorFolder]) -> tuple[str, ...]:
    """The keys, apart from the card, by which upstream must also write the events."""
    return tuple(sorted({"terminal"} | {d.declaration.key for d in detectors} - {"card"}))

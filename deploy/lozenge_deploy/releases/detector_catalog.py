"""The detectors of a source tree, and the topics that they and the platform need.

    python -m lozenge_deploy.releases.detector_catalog [FOLDER]

creates the topics for the detectors below FOLDER ("detectors") at `LOZENGE_KAFKA_*`, and does nothing
to those that exist.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lozenge.contracts import topics
from lozenge.contracts.topics import Topic
from lozenge.detector.manifest import Manifest, read
from lozenge.errors import LozengeError, UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics


@dataclass(frozen=True)
class DetectorFolder:
    """A detector as it lies in the source tree."""

    name: str
    version: str
    declaration: Manifest
    folder: Path

    @property
    def input(self) -> str:
        """The canonical topic that it reads."""
        return topics.events_by(self.declaration.key)


def detectors_in(folder: Path) -> list[DetectorFolder]:
    """Every detector below `folder`; raises ConfigError, UsageError if there is none."""
    files = sorted(folder.glob("[a-z]*/pyproject.toml"))
    found = [DetectorFolder(*read(file), file.parent) for file in files]
    if not found:
        raise UsageError(f"looking for detectors: {folder} has none", hint="each is a folder with a pyproject.toml")
    return found


def copies(detectors: Sequence[DetectorFolder]) -> tuple[str, ...]:
    """The keys by which upstream has to write the events too."""
    return tuple(sorted({"terminal"} | {d.declaration.key for d in detectors} - {"card"}))


def all_topics(detectors: Sequence[DetectorFolder]) -> list[Topic]:
    """Every topic of a platform with these detectors."""
    own = [topic for detector in detectors for topic in topics.detector_topics(detector.name)]
    return [*topics.platform_topics(copies(detectors)), *own]


def main() -> int:
    """Creates the topics; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lozenge_deploy.releases.detector_catalog", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("detectors"))
    try:
        wanted = all_topics(detectors_in(parser.parse_args().folder))
        ensure_topics(KafkaSettings.load(), wanted)
    except LozengeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"{len(wanted)} topics are there")
    return 0


if __name__ == "__main__":
    sys.exit(main())

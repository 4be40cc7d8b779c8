"""A release: a detector's folder at one moment, complete, numbered and immutable.

It holds the detector's wheel, the lock of its dependencies, and the detector's description of itself.
"""

import base64
import gzip
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, ValidationError, ValidationInfo

from lozenge.detector.description import Description
from lozenge.errors import DetectorError
from lozenge.process.atomic_write import replace
from lozenge_deploy.releases import detector_process
from lozenge_deploy.releases.build import Parts, Wheel, parts_of
from lozenge_deploy.releases.environments import environment


def _zipped(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _unzipped(text: str, info: ValidationInfo) -> str:
    return gzip.decompress(base64.b64decode(text)).decode() if info.mode == "json" else text


Zipped = Annotated[str, PlainSerializer(_zipped, when_used="json"), BeforeValidator(_unzipped)]
"""Text that is compressed in JSON."""


@dataclass(frozen=True)
class Built:
    """A built folder, which can become a release."""

    parts: Parts
    description: Description

    def numbered(self, number: int, *, by: str) -> "Release":
        """The release of this number, made now by `by`."""
        parts = self.parts
        return Release(
            **dict(self.description),
            number=number,
            digest=parts.digest,
            made_at=datetime.now(UTC),
            made_by=by,
            python=parts.python,
            library=parts.library.digest,
            wheel=parts.wheel,
            lock=parts.lock,
        )


class Release(Description):
    """A numbered release; `digest` is that of its contents, `library` that of the library's wheel.

    `python` is the minor version that its lock is for.
    """

    number: int
    digest: str
    made_at: datetime
    made_by: str
    python: str
    library: str
    wheel: Wheel
    lock: Zipped

    @property
    def name(self) -> str:
        """Its name for people, in alerts and in job specs: "r7"."""
        return f"r{self.number}"


def build(folder: Path) -> Built:
    """Builds the detector in `folder`; raises as `parts_of`, `environment` and `described` do."""
    parts = parts_of(folder)
    return described(parts, environment(parts))


def described(parts: Parts, python: Path) -> Built:
    """The parts with the description that the detector gives in their `python`.

    Raises ConfigError or DetectorError with its message if it fails.
    """
    known = python.parents[1] / "description.json"  # equal parts have equal descriptions
    if known.is_file():
        return Built(parts, Description.model_validate_json(known.read_text("utf-8")))
    text = detector_process.description(parts.detector, python)
    try:
        description = Description.model_validate_json(text)
    except ValidationError as error:
        raise DetectorError(
            f"describing {parts.detector}: its process has ended without a description",
            hint="its module must not end the process, as os._exit() does",
        ) from error
    replace(known, text)
    return Built(parts, description)

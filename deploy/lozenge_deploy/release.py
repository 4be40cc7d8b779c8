"""A release: what a detector's folder was at one moment, complete, numbered and never changed.

It holds the detector's wheel, the lock of everything beside it, and what the detector tells of itself.
"""

import base64
import gzip
import os
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, ValidationInfo

from lozenge.errors import ConfigError, DetectorError
from lozenge.job.describe import Description
from lozenge_deploy.environments import environment, in_environment
from lozenge_deploy.parts import Parts, Wheel, parts_of


def _zipped(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _unzipped(text: str, info: ValidationInfo) -> str:
    return gzip.decompress(base64.b64decode(text)).decode() if info.mode == "json" else text


Zipped = Annotated[str, PlainSerializer(_zipped, when_used="json"), BeforeValidator(_unzipped)]
"""Text that is compressed in JSON."""


@dataclass(frozen=True)
class Built:
    """A folder made ready to become a release."""

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
            platform=parts.platform.digest,
            wheel=parts.wheel,
            lock=parts.lock,
        )


class Release(Description):
    """A numbered release; `digest` is that of its contents, `platform` that of the platform's wheel.

    `python` is the minor version that its lock is for.
    """

    number: int
    digest: str
    made_at: datetime
    made_by: str
    python: str
    platform: str
    wheel: Wheel
    lock: Zipped

    @property
    def name(self) -> str:
        """How people, alerts and start orders call it: "r7"."""
        return f"r{self.number}"


def build(folder: Path) -> Built:
    """Builds the detector in `folder` and lets it describe itself in its environment.

    Raises as `environment_of` does, and ConfigError or DetectorError with its words if it cannot do that.
    """
    parts = parts_of(folder)
    python = environment(parts)
    known = python.parents[1] / "description.json"  # the same parts tell the same of themselves
    if not known.is_file():
        new = known.with_suffix(f".{os.getpid()}")
        new.write_text(_told(python, folder.name), "utf-8")
        new.rename(known)
    return Built(parts, Description.model_validate_json(known.read_text("utf-8")))


def _told(python: Path, name: str) -> str:
    # in a folder of its own, or Python would import what lies in the present one
    command, place = [str(python), "-m", "lozenge.job.describe"], python.parents[1]
    run = subprocess.run(command, env=in_environment(os.environ), cwd=place, capture_output=True, text=True)
    if run.returncode:
        kind = ConfigError if run.returncode == ConfigError.exit_code else DetectorError
        said, _, hint = run.stderr.strip().partition("\n  -> ")
        raise kind(f"describing {name}: {said}", hint=hint)
    return run.stdout

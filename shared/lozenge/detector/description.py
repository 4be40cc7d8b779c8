"""What deploy knows of a detector without importing its code; `lozenge.job.tools.describe` makes it."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from lozenge.contracts.detector_kind import DetectorKind
from lozenge.detector.manifest import Manifest
from lozenge.streams.definition import StreamDefinition


class Description(BaseModel):
    """A detector as data: all that is needed to deploy, configure or replace it.

    `stream` is what it reads, as it was when it was checked. `settings` are the defaults, as `LOZENGE_JOB_SETTINGS`
    takes them; `settings_schema` is their JSON schema. `state_shape` is None unless the detector is stateful. `schemas`
    are the ids of the Avro schemas it was built with.
    """

    model_config = ConfigDict(frozen=True)

    detector: str
    version: str
    declaration: Manifest
    stream: StreamDefinition
    settings: dict[str, Any]
    settings_digest: str
    settings_schema: dict[str, Any]
    state_shape: dict[str, Any] | None
    schemas: list[int]

    @property
    def kind(self) -> DetectorKind:
        """The declared kind."""
        return self.declaration.kind

    @property
    def key(self) -> str:
        """The entity of its alerts."""
        return self.stream.key(self.declaration.key)

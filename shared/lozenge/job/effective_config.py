"""The configuration in force: what the detector declares, with the overrides of the newest job spec."""

from dataclasses import dataclass
from datetime import timedelta

from lozenge.detector.definition import Settings
from lozenge.detector.loader import LoadedDetector
from lozenge.errors import ConfigError
from lozenge.job.settings import JobSettings, detector_settings
from lozenge.protocol.job_spec import JOB_SPEC, JobSpec, parse_overrides, read_job_spec


@dataclass(frozen=True)
class EffectiveConfig:
    """What a query is planned by; `max_batch` is in offsets."""

    settings: Settings
    trigger: timedelta
    max_batch: int

    @classmethod
    def of(cls, loaded: LoadedDetector, spec: JobSpec) -> "EffectiveConfig":
        """The manifest with the overrides of `spec`; raises ConfigError with every problem of the settings."""
        manifest = loaded.declaration
        trigger = spec.trigger or manifest.trigger
        if refusal := manifest.refused_trigger(trigger):
            raise ConfigError(f"running {loaded.name}: {refusal}", hint="set a longer trigger, or none")
        return cls(
            settings=detector_settings(loaded, spec.settings),
            trigger=trigger,
            max_batch=spec.max_batch or manifest.max_batch,
        )


class JobSpecFile:
    """The spec of one job: from the file in its folder, or, without a folder, from the environment."""

    def __init__(self, job: JobSettings) -> None:
        """Raises ConfigError if the spec cannot be read."""
        self._file = job.folder / JOB_SPEC if job.folder else None
        self._seen = self._version()  # before the read, so that a spec written in between counts as newer
        self.current = (
            read_job_spec(job.folder)
            if job.folder
            else JobSpec(generation=job.generation, settings=parse_overrides(job.settings))
        )

    def newer(self) -> JobSpec | None:
        """The spec if it was replaced since the last call; raises ConfigError, once, if it cannot be read."""
        if self._file is None or (version := self._version()) == self._seen:
            return None
        self._seen = version
        self.current = read_job_spec(self._file.parent)
        return self.current

    def _version(self) -> tuple[int, int]:
        if self._file is None or not self._file.exists():
            return 0, 0
        stat = self._file.stat()
        return stat.st_ino, stat.st_mtime_ns

"""Polls the spec of a job, and says what a new one changes."""

from collections.abc import Callable
from dataclasses import dataclass

from lozenge.detector.definition import Settings
from lozenge.detector.loader import LoadedDetector
from lozenge.errors import ConfigError, DetectorError
from lozenge.job.effective_config import EffectiveConfig, JobSpecFile
from lozenge.job.lifecycle.status_reporter import JobStatusReporter
from lozenge.process.logging import logger
from lozenge.protocol.job_spec import JobSpec


@dataclass(frozen=True, slots=True)
class SpecChange:
    """A spec that came after another one."""

    before: JobSpec
    after: JobSpec

    @property
    def cuts_over(self) -> bool:
        """Whether a standby that processes becomes live, as the only instance."""
        return self.before.standby and not self.after.standby and not self.after.shared


class SpecWatcher:
    """The newest valid spec of a job, and the `config` that it makes of the detector's manifest."""

    def __init__(self, loaded: LoadedDetector, file: JobSpecFile, reporter: JobStatusReporter) -> None:
        """Raises ConfigError if the first spec is not valid."""
        self._loaded, self._file, self._reporter = loaded, file, reporter
        self.spec = file.current
        self.config = EffectiveConfig.of(loaded, self.spec)

    def poll(self, check: Callable[[Settings], None]) -> SpecChange | None:
        """A newer spec, which is in force from now on; None if there is none, or if it is rejected.

        `check` raises DetectorError for settings that the detector cannot be planned with; it is asked about other
        settings than the present ones. A rejected spec is reported, and changes nothing.
        """
        try:
            spec = self._file.newer()
            if spec is None:
                return None
            config = EffectiveConfig.of(self._loaded, spec)
            if config.settings != self.config.settings:
                check(config.settings)
        except (ConfigError, DetectorError) as error:
            logger().error(error.message, hint="the job keeps running as before")
            self._reporter.update(rejected=str(error), revision=self._file.current.revision)
            return None
        change = SpecChange(self.spec, spec)
        self.spec, self.config = spec, config
        return change

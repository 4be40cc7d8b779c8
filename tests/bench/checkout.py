"""A scratch checkout with detectors of its own, and an operator's command line on it."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from lozenge.streams.project import STREAMS_VARIABLE
from lozenge_deploy.cli.author.scaffold import write
from lozenge_deploy.releases.build import parts_of
from lozenge_deploy.releases.environments import environment
from lozenge_deploy.releases.test_run import proof_of
from tests.streams import AUTH, FOLDER


class Checkout:
    """`folder` with `detectors` (kind by name), for the broker at `bootstrap`."""

    def __init__(self, folder: Path, bootstrap: str, detectors: Mapping[str, str]) -> None:
        self.folder, self.kinds = folder, dict(detectors)
        self.environment = os.environ | {"LOZENGE_KAFKA_BOOTSTRAP": bootstrap, STREAMS_VARIABLE: str(FOLDER)}
        self.detectors = folder / "detectors"
        self.detectors.mkdir()
        (folder / "pyproject.toml").touch()
        self._versions: Counter[str] = Counter()

    def scaffold(self, detector: str, trigger: str) -> None:
        """Writes the folder of a detector from its kind's template."""
        write(self.detectors, detector, self.kinds[detector], "tests", AUTH)
        self.declare(detector, trigger=trigger)

    def declare(self, detector: str, **values: str) -> None:
        """Adds to what a detector declares."""
        project = self.detectors / detector / "pyproject.toml"
        lines = [project.read_text("utf-8").rstrip(), *(f'{name} = "{value}"' for name, value in values.items())]
        project.write_text("\n".join(lines) + "\n", "utf-8")

    def trust(self, detector: str) -> None:
        """Spares its next deployment the detector's tests, which would take a minute and are not what is tested."""
        folder = self.detectors / detector
        proof_of(folder, environment(parts_of(folder))).touch()

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs the command as an operator would."""
        command = [sys.executable, "-m", "lozenge_deploy.cli", *arguments]
        return subprocess.run(command, env=self.environment, cwd=self.folder, capture_output=True, text=True)

    def lozenge(self, *arguments: str) -> None:
        """Runs the command, which must succeed."""
        run = self.run(*arguments)
        assert run.returncode == 0, f"{' '.join(arguments)}: {run.stdout}{run.stderr}"

    def unchanged(self, detector: str) -> bool:
        """Whether there is only its first version."""
        return self._versions[detector] == 0

    def change(self, detector: str, code: str = "") -> None:
        """Makes another version of the detector's module, with `code` at its end."""
        self._versions[detector] += 1
        module = self.detectors / detector / f"{detector}.py"
        text = module.read_text("utf-8").split("\n# version")[0]
        module.write_text(f"{text}\n# version {self._versions[detector]}\n{code}", "utf-8")

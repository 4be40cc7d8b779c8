"""JVM jars of peers: fetched once by the Ivy inside pyspark, and held to the SHA-256 pinned next to their names."""

import hashlib
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pyspark

from lozenge.errors import ToolchainError
from lozenge.toolchain import cache_path, one_at_a_time
from lozenge.toolchain.java import java_home


@dataclass(frozen=True, slots=True)
class Jar:
    """One artifact, without what it depends on."""

    organisation: str
    name: str
    version: str
    sha256: str

    def path(self) -> Path:
        """The file; raises ToolchainError if it cannot be fetched or is not what was pinned."""
        file = cache_path("bench") / f"{self.name}-{self.version}.jar"
        if not file.exists():
            with one_at_a_time("bench"):
                self._fetch(file.parent)
        if not file.exists() or hashlib.sha256(file.read_bytes()).hexdigest() != self.sha256:
            raise ToolchainError(f"fetching {file.name}: it is not what was pinned", hint=f"delete {file}, try again")
        return file

    def _fetch(self, into: Path) -> None:
        ivy = next(Path(pyspark.__file__).parent.glob("jars/ivy-*.jar"))
        home = cache_path("bench", "ivy")
        command = [str(java_home() / "bin" / "java"), "-Divy.checksums=", f"-Divy.default.ivy.user.dir={home}"]
        command += ["-jar", str(ivy), "-cache", str(home), "-dependency", self.organisation, self.name, self.version]
        command += ["-notransitive", "-types", "jar", "bundle", "-retrieve", f"{into}/[artifact]-[revision].[ext]"]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            raise ToolchainError(f"fetching {self.name}: {run.stdout[-500:]}", hint="look at the network")

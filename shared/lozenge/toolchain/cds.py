"""Class-data archives: the classes that a program loads, parsed once and mapped at every start.

An archive halves the time and processor cost of a start. The JVM accepts one only for exactly the class path and Java
it was made with, so these are in its name. With another one, or a damaged one, the JVM starts without, as it always
did. There is one for Spark's jobs, and one for the embedded broker.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lozenge.toolchain import cache_path, one_at_a_time, spark_home
from lozenge.toolchain.jars import jars
from lozenge.toolchain.java import find_java

# Java 25 keeps compiled profiles with the classes, under another option; up to 24 there is only the latter.
_ONE_STEP_AOT = 25


@dataclass(frozen=True)
class ClassDataArchive:
    """The archive of the program `name`, which is installed in `home` and has its classes on `class_path`.

    `training` is a Python module that runs the program for a moment. It takes the JVM option that writes the archive,
    and a folder for what it writes itself.
    """

    name: str
    home: Path
    class_path: Sequence[Path]
    training: str

    def options(self) -> list[str]:
        """JVM options for the program: use the archive if there is one, else none."""
        file = self.file()
        if not file:
            return []
        use = "-XX:AOTCache=" if find_java().version >= _ONE_STEP_AOT else "-XX:SharedArchiveFile="
        return [f"{use}{file}", "-Xlog:disable", "-Xlog:all=error:stderr"]

    def file(self) -> Path | None:
        """The archive for this Java and this class path, if it was made and is whole.

        A JVM that is given a file cut short crashes, so its name carries its size.
        """
        for file in self._stem.parent.glob(f"{self._stem.name}-*.jsa"):
            if file.stem == f"{self._stem.name}-{file.stat().st_size}":
                return file
        return None

    def make(self, *, timeout: float = 600) -> Path | None:
        """Makes the archive, unless it is there, by running the training.

        None if that did not work within `timeout` seconds, with the reason on stderr: nothing depends on it. Safe to
        run in several processes at once: the others wait for the first.
        """
        stem = self._stem
        with one_at_a_time("cds"):
            if ready := self.file():
                return ready
            print(
                f"making the class-data archive of {self.name}, which makes every later start cheaper", file=sys.stderr
            )
            with tempfile.TemporaryDirectory(dir=cache_path("cds")) as folder:
                made = Path(folder, "archive")
                try:
                    run = subprocess.run(self._training(made), timeout=timeout, capture_output=True, text=True)
                    size = made.stat().st_size
                    shutil.rmtree(stem.parent, ignore_errors=True)  # what was made for earlier jars here
                    stem.parent.mkdir(parents=True)
                    made.replace(f"{stem}-{size}.jsa")
                except subprocess.TimeoutExpired:
                    print(f"class-data archive: the training took more than {timeout:g} s", file=sys.stderr)
                except FileNotFoundError:
                    print("class-data archive: the training wrote none; it said", file=sys.stderr)
                    print("\n".join(run.stderr.splitlines()[-5:]), file=sys.stderr)
            return self.file()

    def _training(self, made: Path) -> list[str]:
        write = "-XX:AOTCacheOutput=" if find_java().version >= _ONE_STEP_AOT else "-XX:ArchiveClassesAtExit="
        return [sys.executable, "-m", self.training, f"{write}{made}", str(made.parent)]

    @cached_property
    def _stem(self) -> Path:
        """The archive's path without its size: a folder for where Java and the program are, a name for its classes."""
        java = find_java()
        content = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in self.class_path]
        return cache_path("cds", f"{self.name}-java-{java.version}-{_digest(java.jdk, self.home)}", _digest(*content))


def spark_archive() -> ClassDataArchive:
    """The archive of Spark's drivers."""
    home = spark_home()
    class_path = [*jars("connector"), *sorted(home.glob("jars/*.jar"))]
    return ClassDataArchive("spark", home, class_path, "lozenge.spark.cds_training")


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]

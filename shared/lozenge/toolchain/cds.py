"""A class-data archive: the classes that a Spark job loads, parsed once and mapped at every start.

It halves the time and processor cost of a start. The JVM accepts an archive only for exactly the
class path and Java it was made with, so these are in its name; with another one, or a damaged one,
the JVM starts without, as it always did.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from lozenge.toolchain import cache_path, one_at_a_time, spark_home
from lozenge.toolchain.jars import jars
from lozenge.toolchain.java import find_java

# Java 25 keeps compiled profiles with the classes, under another option; up to 24 there is only the latter.
_ONE_STEP_AOT = 25


def options() -> list[str]:
    """JVM options for a Spark driver: use the archive if there is one, else none."""
    file = archive()
    if not file:
        return []
    use = "-XX:AOTCache=" if find_java().version >= _ONE_STEP_AOT else "-XX:SharedArchiveFile="
    return [f"{use}{file}", "-Xlog:disable", "-Xlog:all=error:stderr"]


def archive() -> Path | None:
    """The archive for this Java, this pyspark and these jars, if it was made and is whole.

    A JVM that is given a file cut short crashes, so its name carries its size.
    """
    stem = _stem()
    for file in stem.parent.glob(f"{stem.name}-*.jsa"):
        if file.stem == f"{stem.name}-{file.stat().st_size}":
            return file
    return None


def make(*, timeout: float = 600) -> Path | None:
    """Makes the archive, unless it is there, by running a short job that does what jobs do.

    None if that did not work within `timeout` seconds, with the reason on stderr: nothing depends on
    it. Safe to run in several processes at once: the others wait for the first.
    """
    stem = _stem()
    with one_at_a_time("cds"):
        if ready := archive():
            return ready
        print("making the class-data archive, which makes every later start cheaper (half a minute)", file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=cache_path("cds")) as folder:
            made = Path(folder, "archive")
            try:
                run = subprocess.run(_training(made), timeout=timeout, capture_output=True, text=True)
                size = made.stat().st_size
                shutil.rmtree(stem.parent, ignore_errors=True)  # what was made for an earlier pyspark here
                stem.parent.mkdir(parents=True)
                made.replace(f"{stem}-{size}.jsa")
            except subprocess.TimeoutExpired:
                print(f"class-data archive: the training job took more than {timeout:g} s", file=sys.stderr)
            except FileNotFoundError:
                print("class-data archive: the training job wrote none; it said", file=sys.stderr)
                print("\n".join(run.stderr.splitlines()[-5:]), file=sys.stderr)
        return archive()


def _training(made: Path) -> list[str]:
    write = "-XX:AOTCacheOutput=" if find_java().version >= _ONE_STEP_AOT else "-XX:ArchiveClassesAtExit="
    return [sys.executable, "-m", "lozenge.spark.cds_training", f"{write}{made}", str(made.parent)]


def _stem() -> Path:
    """The archive's path without its size: a folder for where Java and Spark are, a name for what is there."""
    java = find_java()
    spark = spark_home()
    class_path = [*jars("connector"), *sorted(spark.glob("jars/*.jar"))]
    content = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in class_path]
    return cache_path("cds", f"java-{java.version}-{_digest(java.jdk, spark)}", _digest(*content))


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]

"""Counts the JVMs that a run starts, prints their numbers at its end, and fails the run above a limit.

`JAVA_HOME` becomes a folder whose `bin/java` notes each start and then becomes the Java of before. Every process of the
run inherits the variable, so the numbers include what a job, an agent or a command of a test has started.

The run is one of pytest, or that of any command: `python -m tests.plugins.jvm_starts COMMAND ...` counts the starts of
all its processes. A run within a run counts for both.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from lozenge.errors import ToolchainError
from lozenge.toolchain.java import find_java

KINDS = {
    "spark": "Spark",
    "broker": "broker",
    "format": "storage format",
    "launcher": "Spark launcher",
    "other": "other",
}
REMEDY = "share a Spark or test the part without one (tests/plugins/jvm_starts.py counts); or raise MAX_SPARK_STARTS"
_LAUNCHER = """\
#!/bin/sh
# Notes which JVM starts, and becomes it.
case " $* " in
  *" -version "*) kind= ;;
  *" org.apache.spark.launcher.Main "*) kind=launcher ;;
  *" org.apache.spark.deploy.SparkSubmit "*) kind=spark ;;
  *" kafka.Kafka "*) kind=broker ;;
  *" kafka.tools.StorageTool "*) kind=format ;;
  *) kind=other ;;
esac
[ -z "$kind" ] || echo "$kind" >> {starts}
exec {java} "$@"
"""
_COUNTER = pytest.StashKey["Starts"]()


@dataclass(frozen=True)
class Starts:
    """The starts that are noted in a folder, which is also a JAVA_HOME."""

    home: Path
    limit: int | None = None

    @classmethod
    def noted(cls, home: Path, java: Path, limit: int | None = None) -> "Starts":
        """Makes the folder; its Java is the one at `java`."""
        starts = cls(home, limit)
        launcher = home / "bin" / "java"
        launcher.parent.mkdir()
        launcher.write_text(_LAUNCHER.format(java=shlex.quote(str(java)), starts=shlex.quote(str(starts._file))))
        launcher.chmod(0o755)
        return starts

    @property
    def _file(self) -> Path:
        return self.home / "starts"

    def count(self) -> Counter[str]:
        """How many there were of each kind."""
        return Counter(self._file.read_text().split() if self._file.exists() else [])

    def excess(self) -> str:
        """The sentence for a run that started too many Sparks; "" for another."""
        found = self.count()["spark"]
        return f"{found} Sparks were started, {self.limit} are allowed: {REMEDY}" if exceeds(found, self.limit) else ""


def exceeds(found: int, limit: int | None) -> bool:
    """Whether there were more than allowed; None allows any number."""
    return limit is not None and found > limit


def summary(starts: Mapping[str, int]) -> str:
    """The numbers in one line."""
    found = [f"{starts[kind]} {name}" for kind, name in KINDS.items() if starts[kind]]
    return "JVM starts: " + (", ".join(found) or "none")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--max-spark-starts", type=int, metavar="N", help="fail the run above so many starts of Spark")


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        return  # a worker inherits its controller's JAVA_HOME
    try:
        java = find_java().home / "bin" / "java"
    except ToolchainError:
        return  # the first test that needs a Java says what is wrong
    folder = Path(tempfile.mkdtemp(prefix="lozenge-java-"))
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    config.stash[_COUNTER] = Starts.noted(folder, java, config.getoption("--max-spark-starts"))
    os.environ["JAVA_HOME"] = str(folder)
    find_java.cache_clear()


def pytest_sessionfinish(session: pytest.Session) -> None:
    starts = session.config.stash.get(_COUNTER, None)
    if starts and starts.excess() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if starts := config.stash.get(_COUNTER, None):
        terminalreporter.write_line(summary(starts.count()))
        if excess := starts.excess():
            terminalreporter.write_line(excess, red=True)


def main(arguments: Sequence[str]) -> int:
    """Runs a command, prints its seconds and numbers on stderr; returns its exit code, or 1 above the limit."""
    parser = argparse.ArgumentParser(prog="python -m tests.plugins.jvm_starts", description=__doc__)
    parser.add_argument("--max-spark-starts", type=int, metavar="N", help="fail above so many starts of Spark")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="lozenge-java-") as folder:
        starts = Starts.noted(Path(folder), find_java().home / "bin" / "java", given.max_spark_starts)
        begun = time.monotonic()
        code = subprocess.run(given.command, env=os.environ | {"JAVA_HOME": folder}).returncode
        print(f"in all, {time.monotonic() - begun:,.0f} s; {summary(starts.count())}", file=sys.stderr)
        if excess := starts.excess():
            print(excess, file=sys.stderr)
        return code or int(bool(excess))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The launcher notes what starts and becomes the real Java, which is a shell script here."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from lozenge.toolchain.java import Java
from tests.plugins import jvm_starts
from tests.plugins.jvm_starts import Starts, main, summary

SPARK = ["-cp", "jars", "-Xmx1g", "org.apache.spark.deploy.SparkSubmit", "pyspark-shell"]
COMMANDS = [
    SPARK,
    SPARK,
    ["-cp", "jars", "org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit", "pyspark-shell"],
    ["-Xmx256m", "kafka.Kafka", "server.properties"],
    ["kafka.tools.StorageTool", "format"],
    ["Example.java"],
    ["-XshowSettings:properties", "-version"],
]


@pytest.fixture
def java(tmp_path: Path) -> Path:
    """A Java in a folder with a space that repeats its arguments."""
    java = tmp_path / "a jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    java.chmod(0o755)
    return java


def home(tmp_path: Path) -> Path:
    home = tmp_path / "a home"
    home.mkdir()
    return home


def test_every_start_counts_by_what_it_starts_and_the_question_for_the_version_does_not(
    tmp_path: Path, java: Path
) -> None:
    starts = Starts.noted(home(tmp_path), java)
    assert summary(starts.count()) == "JVM starts: none"
    for command in COMMANDS:
        said = subprocess.check_output([starts.home / "bin" / "java", *command], text=True)
        assert said == "".join(f"<{argument}>" for argument in command)
    wanted = "JVM starts: 2 Spark, 1 broker, 1 storage format, 1 Spark launcher, 1 other"
    assert summary(starts.count()) == wanted


@pytest.mark.parametrize(("limit", "exceeded"), [(None, False), (2, False), (1, True)])
def test_only_more_starts_of_spark_than_allowed_are_too_many(
    tmp_path: Path, java: Path, limit: int | None, exceeded: bool
) -> None:
    starts = Starts.noted(home(tmp_path), java, limit)
    for command in COMMANDS:
        subprocess.check_output([starts.home / "bin" / "java", *command])
    assert starts.excess().startswith("2 Sparks were started, 1 are allowed") is exceeded
    assert bool(starts.excess()) is exceeded


@pytest.mark.parametrize(
    ("limit", "ending", "code"),
    [("2", "", 0), ("1", "", 1), ("2", "; exit 7", 7)],
    ids=["allowed", "too many", "the command fails"],
)
def test_the_starts_of_all_processes_of_a_command_are_counted(
    java: Path, limit: str, ending: str, code: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    home = java.parents[1]
    monkeypatch.setattr(jvm_starts, "find_java", lambda: Java(home, 17, "test", home))
    starts = "; ".join(f"sh -c '\"$JAVA_HOME/bin/java\" {shlex.join(command)}'" for command in COMMANDS)
    assert main(["--max-spark-starts", limit, "sh", "-c", starts + ending]) == code
    said = capfd.readouterr().err
    assert re.search(
        r"^in all, \d+ s; JVM starts: 2 Spark, 1 broker, 1 storage format, 1 Spark launcher, 1 other$",
        said,
        re.MULTILINE,
    )
    assert ("2 Sparks were started, 1 are allowed" in said) is (limit == "1")

"""An operator's day with a file source: drafted, checked, deployed, changed, failed, retried, rolled back, retired."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lozenge.contracts.topics import Topic
from lozenge.file_sources.definition import Format
from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import ensure_topics
from tests.deploy.command import invoke
from tests.upstream.files.samples import rows_of, write
from tests.waiting import until


class Operator:
    """Runs commands in a project with file sources."""

    def __init__(self, kafka: KafkaSettings, folder: Path) -> None:
        self.kafka, self.folder, self.files = kafka, folder, folder / "in"
        self.declaration = folder / "upstream" / "sources" / "night" / "source.toml"
        self.files.mkdir()
        self.declaration.parents[1].mkdir(parents=True)

    def said(self, *arguments: str, code: int = 0) -> str:
        run = invoke("source", *arguments, cwd=self.folder, **self.kafka.variables)
        assert run.returncode == code, run.stdout + run.stderr
        return run.stdout + run.stderr

    def shown(self, *arguments: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.said(*arguments, "-o", "json"))
        return found

    @contextmanager
    def instance(self) -> Iterator[None]:
        environment = {**os.environ, **self.kafka.variables, "LOZENGE_FILES_SOURCE": "night"}
        process = subprocess.Popen([sys.executable, "-m", "lozenge_upstream.files"], env=environment)
        try:
            yield
        finally:
            process.terminate()
            assert process.wait(60) == 0


@pytest.fixture
def operator(kafka: KafkaSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Operator:
    monkeypatch.delenv("LOZENGE_SOURCES", raising=False)
    return Operator(kafka, tmp_path)


def test_a_file_source_is_operated_by_its_commands(operator: Operator) -> None:
    write(operator.files / "a.parquet", Format.PARQUET, rows_of("a", 30))
    drafted = ("new", "night", "--from", str(operator.files / "a.parquet"), "--topic", "ROWS-NIGHT")
    assert "no column nobody" in operator.said(*drafted, "--key", "nobody", code=2)
    operator.said(*drafted, "--key", "card")
    operator.declaration.write_text(operator.declaration.read_text().replace('quiet = "10s"', 'quiet = "0s"'))
    assert [row["rows"] for row in operator.shown("check", "night")] == [30]
    assert "ROWS-NIGHT does not exist" in operator.said("deploy", "night", code=1)
    ensure_topics(operator.kafka, [Topic(operator.kafka.topics.prefixed("ROWS-NIGHT"), 2)])
    (operator.files / "z.parquet").write_bytes(b"PAR1")
    assert "1 of 2 files would fail" in operator.said("deploy", "night", code=1)
    assert "would be r1" in operator.said("deploy", "night", "--skip-files", "--dry-run")
    (operator.files / "z.parquet").unlink()
    assert "would be r1" in operator.said("deploy", "night", "--dry-run")
    assert "not deployed" in operator.said("pause", "night", code=2)
    assert "r1, 1 instance, no limit of speed, running" in operator.said("deploy", "night", "-m", "first")
    with operator.instance():
        until(lambda: [(row["state"], row["rows"]) for row in operator.shown("files", "night")] == [("done", 30)])
        (operator.files / "b.parquet").write_bytes(b"PAR1")
        until(lambda: operator.shown("files", "night", "--state", "failed"))
        assert "1 of 2 would fail" in operator.said("check", "night", code=1)
        write(operator.files / "b.parquet", Format.PARQUET, rows_of("b", 5))
        operator.said("retry", "night", "b.parquet", "--from-start")
        until(lambda: not operator.shown("files", "night", "--state", "failed"))
    [row] = operator.shown("ls")
    assert (row["source"], row["phase"], row["done"], row["rows"], row["failed"]) == ("night", "deployed", 2, 35, 0)


def test_what_operators_request_is_kept_by_releases_and_withdrawn_by_retire(operator: Operator) -> None:
    write(operator.files / "a.csv", Format.CSV, rows_of("a", 3))
    ensure_topics(operator.kafka, [Topic(operator.kafka.topics.prefixed("ROWS-DAY"), 2)])
    operator.said("new", "day", "--from", str(operator.files / "a.csv"), "--topic", "ROWS-DAY")
    declaration = operator.declaration.parents[1] / "day" / "source.toml"
    operator.said("deploy", "day")
    for change in (["set", "day", "--rate", "500"], ["scale", "day", "--instances", "3"], ["pause", "day"]):
        operator.said(*change)
    declaration.write_text(declaration.read_text().replace("max_bad = 0.01", "max_bad = 0.5"))
    assert "r2, 3 instances, 500 rows a second, paused" in operator.said("deploy", "day", "-m", "more")
    assert "deployed already" in operator.said("deploy", "day", code=2)
    assert "r1, 3 instances" in operator.said("rollback", "day")
    assert [(row["release"], row["deployed"], row["reason"]) for row in operator.shown("history", "day")] == [
        ("r2", "", "more"),
        ("r1", "now", ""),
    ]
    assert "running" in operator.said("resume", "day")
    assert "retired" in operator.said("retire", "day")
    assert "not deployed" in operator.said("retire", "day", code=2)

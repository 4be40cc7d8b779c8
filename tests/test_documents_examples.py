"""What the README shows is what the project writes and runs. The code of the guides runs in `tests/integration`."""

import re
import runpy
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pyspark
import pytest

from lozenge.contracts.avro import Codec
from lozenge.contracts.schemas import newest
from lozenge.contracts.topics import Topics
from lozenge_deploy.cli.author import scaffold
from tests.streams import AUTH

TOPICS = Topics()
REGISTERED = replace(newest("notification"), id=1002)
"""The schema under an id that a registry has given."""

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "consume_notifications.py"
README = (ROOT / "README.md").read_text("utf-8")


def test_the_readme_is_short() -> None:
    lines = len(README.splitlines())
    assert lines <= 150, f"README.md has {lines} lines: move details to docs/, a newcomer reads 150"


def test_the_detector_in_the_readme_is_the_one_that_new_writes(tmp_path: Path) -> None:
    [shown] = re.findall(r"<!-- excerpt: lozenge new big_cash -->\n```python\n(.*?)```", README, re.DOTALL)
    written = scaffold.contents(tmp_path, "big_cash", "rule", "you", AUTH)[
        tmp_path / "big_cash" / "big_cash.py"
    ].decode()
    lines = iter(written.splitlines())
    missing = [line for line in shown.splitlines() if line and line not in lines]  # in this order: `in` advances
    assert missing == [], f"README.md shows lines that `lozenge new` does not write:\n{written}"


class Consumer(list[Any]):
    """A consumer of one partition that yields these records; the oldest one in Kafka has offset `beginning`."""

    def __init__(self, seqs: Iterable[int], beginning: int) -> None:
        now = datetime(2026, 3, 1, tzinfo=UTC)
        texts = dict.fromkeys(("notification_id", "status", "case_id", "severity", "title", "text"), "x")
        rest = {"alert_ids": [], "routes": [], "event_time": now, "created_at": now}
        codec = Codec(REGISTERED)
        values = (codec.encode({**texts, **rest, "seq": seq}) for seq in seqs)
        super().__init__(SimpleNamespace(topic=TOPICS.notifications, partition=0, value=value) for value in values)
        self._beginning = beginning

    def beginning_offsets(self, partitions: list[Any]) -> dict[Any, int]:
        return dict.fromkeys(partitions, self._beginning)


@pytest.mark.parametrize(
    ("seqs", "beginning", "gaps"),
    [
        ([0, 1, 2, 3], 0, []),
        ([0, 1, 3], 0, ["GAP partition 0: expected seq 2, got 3"]),
        ([1, 2, 3], 0, ["GAP partition 0: expected seq 0, got 1"]),
        ([7, 8, 9], 12, []),
        ([7, 9], 12, ["GAP partition 0: expected seq 8, got 9"]),
    ],
)
def test_the_example_of_a_consumer_reports_every_gap(
    seqs: list[int],
    beginning: int,
    gaps: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("kafka.KafkaConsumer", lambda *_, **__: Consumer(seqs, beginning))
    monkeypatch.setattr("lozenge.kafka.schema_topic.learn", lambda *_: [REGISTERED])
    monkeypatch.setattr("sys.argv", ["consume", "broker:9092", "--from-beginning"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert ended.value.code == bool(gaps)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("GAP")] == gaps
    assert len(lines) == len(seqs) + len(gaps)


def test_a_consumer_of_new_records_begins_with_the_first_that_it_sees(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: dict[str, Any] = {}

    def consumer(*_: object, **settings: Any) -> Consumer:
        given.update(settings)
        return Consumer([7, 8], 0)

    monkeypatch.setattr("kafka.KafkaConsumer", consumer)
    monkeypatch.setattr("lozenge.kafka.schema_topic.learn", lambda *_: [REGISTERED])
    monkeypatch.setattr("sys.argv", ["consume", "broker:9092", "--follow"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert (ended.value.code, "GAP" in capsys.readouterr().out) == (0, False)
    assert (given["auto_offset_reset"], given["consumer_timeout_ms"]) == ("latest", float("inf"))


@pytest.mark.parametrize(("arguments", "code"), [([], 2), (["--help"], 0), (["a:1", "b:2"], 2), (["--what", "a:1"], 2)])
def test_the_example_says_how_it_is_used(
    arguments: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["consume", *arguments])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(EXAMPLE), run_name="__main__")
    printed = capsys.readouterr()
    assert (ended.value.code, "--from-beginning" in printed.out + printed.err) == (code, True)


def test_the_build_file_of_the_java_example_names_the_versions_that_run_here() -> None:
    project = ElementTree.parse(EXAMPLE.with_name("pom.xml"))
    versions = {d.findtext("artifactId"): d.findtext("version") for d in project.iter("dependency")}
    broker = ElementTree.parse(str(resources.files("lozenge.toolchain").joinpath("ivy.xml")))
    assert versions["kafka-clients"] == broker.find(".//dependency[@name='kafka_2.13']").get("rev")  # type: ignore[union-attr]
    spark = {path.stem for path in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    assert {f"{name}-{versions[name]}" for name in ("avro", "jackson-databind")} <= spark


def test_every_target_that_the_documents_name_is_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "detectors" / "README.md", *ROOT.glob("docs/**/*.md")]
    named = {
        (page.relative_to(ROOT).as_posix(), target)
        for page in pages
        for target in re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text("utf-8"), re.MULTILINE)
    }
    assert {(page, target) for page, target in named if f"\n{target}:" not in makefile} == set()

"""The README's code is what the project runs."""

import re
import runpy
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lozenge.contracts.avro import Codec
from lozenge.contracts.topics import NOTIFICATIONS

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "consume_notifications.py"
README = (ROOT / "README.md").read_text("utf-8")


def test_the_detector_in_the_readme_passes_its_tests(tmp_path: Path) -> None:
    folder = tmp_path / "night_cash"
    folder.mkdir()
    blocks = re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", README, re.DOTALL)
    assert {name for name, _ in blocks} == {"night_cash.py", "pyproject.toml", "test_night_cash.py"}
    for name, text in blocks:
        (folder / name).write_text(text, "utf-8")
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "2 passed" in result.stdout


def test_the_consumer_in_the_readme_is_the_example() -> None:
    [shown] = re.findall(r"<!-- include: examples/consume_notifications.py -->\n```python\n(.*?)```", README, re.DOTALL)
    assert shown == EXAMPLE.read_text("utf-8")


class Told(list[Any]):
    """A consumer of one partition that gives these records; the oldest one in Kafka lies at `beginning`."""

    def __init__(self, seqs: Iterable[int], beginning: int) -> None:
        now = datetime(2026, 3, 1, tzinfo=UTC)
        texts = dict.fromkeys(("notification_id", "status", "case_id", "severity", "title", "text"), "x")
        rest = {"alert_ids": [], "routes": [], "event_time": now, "created_at": now}
        values = (Codec.of("notification").encode({**texts, **rest, "seq": seq}) for seq in seqs)
        super().__init__(SimpleNamespace(topic=NOTIFICATIONS, partition=0, value=value) for value in values)
        self._beginning = beginning

    def beginning_offsets(self, places: list[Any]) -> dict[Any, int]:
        return dict.fromkeys(places, self._beginning)


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
def test_the_consumer_in_the_readme_tells_every_gap(
    seqs: list[int],
    beginning: int,
    gaps: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("kafka.KafkaConsumer", lambda *_, **__: Told(seqs, beginning))
    monkeypatch.setattr("sys.argv", ["consume", "broker"])
    runpy.run_path(str(EXAMPLE))
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("GAP")] == gaps
    assert len(lines) == len(seqs) + len(gaps)


def test_every_verb_that_the_readme_names_is_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    verbs = set(re.findall(r"make ([a-z-]+)", README)) | set(
        re.findall(r"make ([a-z-]+)", (ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    )
    assert {verb for verb in verbs if f"\n{verb}:" not in makefile} == set()

"""The `lozenge` command: its two streams and its exit code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lozenge.kafka import topic_admin, topic_reader
from lozenge.kafka.compacted_topic import CompactedTopic
from lozenge_deploy.cli.author.scaffold import write
from lozenge_deploy.observe import metrics_reader
from tests.deploy.cli.conftest import made
from tests.deploy.command import invoke, lozenge, surroundings
from tests.streams import AUTH


def test_help_needs_no_import_of_spark_or_kafka() -> None:
    code = "import sys, lozenge_deploy.cli.__main__; print([m for m in sys.modules if m.split('.')[0] in sys.argv[1:]])"
    heavy = ("pyspark", "py4j", "pandas", "pyarrow", "confluent_kafka", "fastavro", "sqlalchemy")
    run = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_help_lists_the_commands(checkout: Path) -> None:
    run = lozenge("--help", cwd=checkout)
    assert run.returncode == 0
    assert all(verb in run.stdout for verb in ("new", "check", "test", "status", "logs", "state", "describe", "doctor"))


def test_a_dry_run_shows_what_it_would_do_and_does_nothing(checkout: Path) -> None:
    run = invoke("new", "spotter", "--dry-run", "-o", "json", cwd=checkout)
    assert [Path(row["file"]).name for row in json.loads(run.stdout)][:2] == ["spotter.py", "test_spotter.py"]
    assert list((checkout / "detectors").iterdir()) == []
    run = invoke("up", "--dry-run", "--folder", "platform", "--port", "19999", cwd=checkout)
    assert (run.returncode, "127.0.0.1:19999" in run.stdout) == (0, True)
    assert not (checkout / "platform").exists()
    made(checkout, "spotter")
    run = invoke("dev", "spotter", "--dry-run", cwd=checkout)
    assert (run.returncode, "would run" in run.stdout) == (0, True)


def test_the_shell_completes_the_names_of_the_folders(checkout: Path) -> None:
    for name in ("spotter", "spender", "other"):
        made(checkout, name)
    asked = {"_LOZENGE_COMPLETE": "complete_bash", "COMP_WORDS": "lozenge deploy sp", "COMP_CWORD": "2"}
    command = Path(sys.executable).with_name("lozenge")
    run = subprocess.run([command], cwd=checkout, env=surroundings(**asked), capture_output=True, text=True)
    assert run.stdout.split() == ["spender", "spotter"]


def test_an_unknown_detector_and_a_folder_without_detectors_are_usage_errors(checkout: Path, tmp_path: Path) -> None:
    run = invoke("check", "nobody", cwd=checkout)
    assert (run.returncode, "lozenge new nobody" in run.stderr) == (2, True)
    (checkout / "detectors").rmdir()
    run = invoke("check", "nobody", cwd=checkout)
    assert (run.returncode, "Traceback" in run.stderr) == (2, False)


@pytest.mark.parametrize(
    "arguments",
    [
        ["status"],
        ["logs", "x"],
        ["state", "x", "y"],
        ["peek", "x"],
        ["history", "x"],
        ["set", "x", "limit=1"],
        ["dlq", "ls"],
    ],
    ids=" ".join,
)
def test_without_a_broker_it_exits_with_3_and_names_the_address(
    checkout: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_admin.partitions, "__kwdefaults__", {"timeout": 0.5})
    monkeypatch.setattr(CompactedTopic.catch_up, "__defaults__", (0.5,))
    monkeypatch.setattr(topic_reader, "CALL_SECONDS", 0.5)
    monkeypatch.setattr(metrics_reader, "_CALL_SECONDS", 0.5)
    run = invoke(*arguments, cwd=checkout, LOZENGE_KAFKA_BOOTSTRAP="127.0.0.1:9")
    assert run.returncode == 3
    assert "127.0.0.1:9" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check"], "is a checkout of several\n  -> name one, or a folder"),
        (["deploy", "spotter", "--set", "limit"], "write it as name=value"),
        (["plan", "spotter", "--set", "=3"], "write it as name=value"),
        (["try", "spotter", "--set", "limit="], "write it as name=value"),
        (["set", "spotter", "limit"], "write it as name=value"),
        (["set", "spotter"], "nothing to set"),
        (["dlq", "replay", "spotter"], "replaying dead letters of spotter: which of them?"),
        (["dlq", "drop", "spotter", "--all", "--key", "k"], "dropping dead letters of spotter: more than one choice"),
        (["dlq", "show", "spotter", "nine"], "reading nine: no position in a topic"),
        (["plan", "spotter", "--last", "soon"], "reading --last: 'soon' is not a duration"),
        (["deploy", "spotter", "--watch", "5"], "reading --watch: '5' is not a duration"),
        (["rollback", "spotter", "--timeout", "-5m"], "reading --timeout: -5m is negative"),
        (["plan", "spotter", "--last", "1000000d"], "reading --last: 1000000d is longer than anything is kept"),
        (["try", "spotter", "--last", "1000000d"], "reading --last: 1000000d is longer than anything is kept"),
        (["dev", "spotter", "--last", "1000000d"], "reading --last: 1000000d is longer than anything is kept"),
        (["deploy", "spotter", "--watch", "999999999d"], "reading --watch: 999999999d is longer than anything is kept"),
        (["deploy", "spotter", "--watch", "9999999999d"], "longer than the longest duration"),
        (["offsets", "spotter", "--at", "1000000d"], "no calendar has that time"),
        (["offsets", "spotter", "--at", "soon"], "reading --at soon: not a time"),
        (["pause", "spotter", "--timeout", "x"], "reading --timeout: 'x' is not a duration"),
        (["set", "spotter", "--trigger", "0s"], "reading --trigger: 0s is zero"),
        (["set", "spotter", "--trigger", "often"], "reading --trigger: 'often' is not a duration"),
        (["set", "spotter", "--isolation", "maybe"], "'--isolation': 'maybe' is not one of 'own', 'shared'."),
        (["set", "spotter", "--isolation", "\x1b[2J"], r"'--isolation': '\x1b[2J' is not one of 'own', 'shared'."),
        (["set", "spotter", "--cores", "many"], "'--cores': it must be a whole number"),
        (["set", "spotter", "--cores", "0"], "'--cores': it must be at least 1"),
    ],
)
def test_a_wrong_argument_is_reported_before_a_broker_is_needed(
    checkout: Path, arguments: list[str], said: str
) -> None:
    write(checkout / "detectors", "spotter", "rule", "me", AUTH)
    run = invoke(*arguments, cwd=checkout, LOZENGE_KAFKA_BOOTSTRAP="127.0.0.1:9")
    assert (run.returncode, said in run.stderr, "Traceback" in run.stderr) == (2, True, False), run.stderr


def test_without_a_terminal_a_row_is_never_wrapped(checkout: Path) -> None:
    made(checkout, "spotter")
    project = checkout / "detectors" / "spotter" / "pyproject.toml"
    project.write_text(project.read_text().replace('title = "Spotter"', f'title = "{"long " * 60}end"'))
    environment = {name: value for name, value in surroundings().items() if name != "COLUMNS"}
    command = [sys.executable, "-m", "lozenge_deploy.cli", "describe", "spotter"]
    run = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=400)
    assert "long long end" in run.stdout


def test_debug_shows_the_stack_trace(checkout: Path) -> None:
    run = invoke("--debug", "check", "nobody", cwd=checkout)
    assert "Traceback" in run.stderr

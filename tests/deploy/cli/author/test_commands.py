"""`lozenge new`, `lozenge check` and `lozenge test`; what the tests of new detectors find is tested with Spark."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lozenge.contracts.detector_kind import DetectorKind
from lozenge.contracts.topics import Topics
from lozenge.detector.manifest import read
from lozenge.streams.folder import write_copy
from lozenge.streams.project import STREAMS_VARIABLE
from lozenge.testing.invariants import INVARIANTS
from lozenge_deploy.releases.lint.folder import problems
from lozenge_deploy.releases.lint.names import LONGEST
from lozenge_deploy.releases.test_run import proof_of
from tests.deploy.cli.conftest import made
from tests.deploy.command import invoke, lozenge
from tests.deploy.sparkless_environments import install
from tests.merged_streams import SIGN_IN
from tests.streams import AUTH

TESTS = """
from types import SimpleNamespace

from lozenge.testing import plugin


def replayed(subject: object) -> None:
    raise AssertionError("1 with another reason\\n  and an example")


plugin.RunRecorder.subject = SimpleNamespace(baseline=["an alert"])
plugin.INVARIANTS = dict.fromkeys(plugin.INVARIANTS, lambda _: None) | {"replayed": replayed}


def test_fires() -> None:
    pass
"""
"""Tests under faults that need no Spark: all but one pass."""


def test_new_refuses_a_stream_or_a_key_that_there_is_not(checkout: Path) -> None:
    run = invoke("new", "spotter", "--key", "wallet", cwd=checkout)
    assert (run.returncode, "the stream auth has no key wallet" in run.stderr) == (2, True), run.stderr
    run = invoke("new", "spotter", "--stream", "claims", cwd=checkout)
    assert (run.returncode, "there is no stream claims" in run.stderr) == (2, True), run.stderr
    assert list((checkout / "detectors").iterdir()) == []


@pytest.fixture
def two_streams(tmp_path: Path) -> dict[str, str]:
    """The variable that names a folder with two streams."""
    for each in (AUTH, SIGN_IN):
        write_copy(each, tmp_path / "streams")
    return {STREAMS_VARIABLE: str(tmp_path / "streams")}


def test_new_reads_several_streams_by_a_key(checkout: Path, two_streams: dict[str, str]) -> None:
    both = ("--stream", "sign_in", "--stream", "auth")
    run = invoke("new", "spotter", *both, "--key", "account", cwd=checkout, **two_streams)
    assert run.returncode == 0, run.stderr
    run = invoke("check", "spotter", cwd=checkout, **two_streams)
    assert (run.returncode, run.stderr) == (0, "")
    _, _, declared = read(checkout / "detectors" / "spotter" / "pyproject.toml")
    assert (declared.kind, declared.streams, declared.key) == ("stateful", ("sign_in", "auth"), "account")
    assert "sign_in" in (checkout / "detectors" / "spotter" / "README.md").read_text("utf-8")
    [shown] = json.loads(invoke("describe", "spotter", "-o", "json", cwd=checkout, **two_streams).stdout)
    assert (shown["stream"], shown["reads"]) == ("sign_in+auth", "pay.merged.by-account.v1")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--key", "merchant"], "auth and sign_in do not share the key merchant"),
        (["--key", "merchant"], "name the entity of the alerts: --key card or --key account"),
        ([], "auth and sign_in can be read by several keys"),
        ([], "name the entity of the alerts: --key card or --key account"),
        (["--key", "account", "--kind", "rule"], "a rule of several streams has no template"),
    ],
)
def test_new_refuses_streams_that_cannot_be_read_together(
    checkout: Path, two_streams: dict[str, str], options: list[str], why: str
) -> None:
    run = invoke("new", "spotter", "--stream", "auth", "--stream", "sign_in", *options, cwd=checkout, **two_streams)
    assert run.returncode == 2
    assert why in run.stderr
    assert list((checkout / "detectors").iterdir()) == []


def test_the_only_key_that_streams_share_need_not_be_named(checkout: Path, tmp_path: Path) -> None:
    write_copy(AUTH, tmp_path / "streams")
    write_copy(SIGN_IN.model_copy(update={"keys": {"account": "account_id"}}), tmp_path / "streams")
    both = ("--stream", "auth", "--stream", "sign_in")
    run = invoke("new", "spotter", *both, cwd=checkout, **{STREAMS_VARIABLE: str(tmp_path / "streams")})
    assert run.returncode == 0, run.stderr
    folder = checkout / "detectors" / "spotter"
    assert read(folder / "pyproject.toml")[2].key == "account"
    assert "Flags an account with sign_in within minutes after auth." in (folder / "README.md").read_text("utf-8")


def test_streams_that_share_no_key_are_named_with_those_that_they_have(checkout: Path, tmp_path: Path) -> None:
    write_copy(AUTH, tmp_path / "streams")
    write_copy(SIGN_IN.model_copy(update={"keys": {"visitor": "account_id"}}), tmp_path / "streams")
    both = ("--stream", "auth", "--stream", "sign_in")
    for command in (("new", "spotter", *both), ("stream", "types", "auth", "sign_in")):
        run = invoke(*command, cwd=checkout, **{STREAMS_VARIABLE: str(tmp_path / "streams")})
        assert run.returncode == 2
        assert "share no key: auth has card in card_id" in run.stderr
        assert "sign_in has visitor in account_id" in run.stderr


@pytest.mark.parametrize("kind", [None, *DetectorKind])
def test_new_reads_the_alerts_of_another_detector_by_its_key(checkout: Path, kind: DetectorKind | None) -> None:
    made(checkout, "large_amount")
    given = [] if kind is None else ["--kind", kind]
    run = invoke("new", "spotter", "--alerts-of", "large_amount", *given, cwd=checkout)
    assert run.returncode == 0, run.stderr
    run = invoke("check", "spotter", cwd=checkout)
    assert (run.returncode, run.stderr) == (0, "")
    _, _, declared = read(checkout / "detectors" / "spotter" / "pyproject.toml")
    assert (declared.kind, declared.alerts_of, declared.key) == (kind or "stateful", "large_amount", "card")
    [shown] = json.loads(invoke("describe", "spotter", "-o", "json", cwd=checkout).stdout)
    assert (shown["stream"], shown["reads"]) == ("alerts.large_amount", "pay.alerts.large_amount.v1")


def test_new_reads_the_alerts_of_a_detector_that_is_elsewhere_by_the_key_that_is_named(checkout: Path) -> None:
    run = invoke("new", "spotter", "--alerts-of", "elsewhere", "--key", "account", cwd=checkout)
    assert run.returncode == 0, run.stderr
    assert read(checkout / "detectors" / "spotter" / "pyproject.toml")[2].key == "account"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--alerts-of", "large_amount", "--key", "account"], "the alerts of large_amount are by card, not by account"),
        (["--alerts-of", "elsewhere"], "has no elsewhere, which would say what its alerts are about"),
        (["--alerts-of", "spotter", "--key", "card"], "it cannot read its own alerts"),
        (["--alerts-of", "../up", "--key", "card"], "no detector is called '../up'"),
        (["--alerts-of", "Large", "--key", "card"], "no detector is called 'Large'"),
        (["--alerts-of", "large_amount", "--stream", "auth"], "it reads a stream, or alerts of large_amount"),
    ],
)
def test_new_refuses_alerts_that_it_cannot_read(checkout: Path, options: list[str], why: str) -> None:
    made(checkout, "large_amount")
    run = invoke("new", "spotter", *options, cwd=checkout)
    assert (run.returncode, why in run.stderr) == (2, True), run.stderr
    assert [folder.name for folder in (checkout / "detectors").iterdir()] == ["large_amount"]


def test_new_then_check_from_the_checkout_and_from_within_the_folder(checkout: Path) -> None:
    run = invoke("new", "spotter", "--kind", "stateful", "--owner", "ann", cwd=checkout)
    assert (run.returncode, len(run.stdout.splitlines())) == (0, 4)
    assert "lozenge test spotter" in run.stderr
    for arguments, cwd in ((["check", "spotter"], checkout), (["check", "."], checkout / "detectors" / "spotter")):
        run = invoke(*arguments, cwd=cwd)
        assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("name", ["Spotter", "1st", "a-b", "../up"])
def test_new_refuses_a_name_that_could_not_be_a_topic(checkout: Path, name: str) -> None:
    run = invoke("new", name, cwd=checkout)
    assert run.returncode == 2
    assert "lower-case letters, digits and underscores" in run.stderr
    assert list((checkout / "detectors").iterdir()) == []


def test_new_refuses_a_name_that_no_distribution_can_have(checkout: Path) -> None:
    run = invoke("new", "big_cash_", cwd=checkout)
    assert (run.returncode, "a name that ends with an underscore" in run.stderr) == (2, True)


@pytest.mark.parametrize("owner", ["   ", "two\nlines", "\udcff", "\u200b"])
def test_new_refuses_an_owner_that_shows_nothing_or_is_no_line(checkout: Path, owner: str) -> None:
    run = invoke("new", "spotter", "--owner", owner, cwd=checkout)
    assert (run.returncode, "is no name" in run.stderr) == (2, True), run.stderr
    assert list((checkout / "detectors").iterdir()) == []


def test_new_refuses_a_name_that_is_too_long_for_a_topic_with_the_limit(checkout: Path) -> None:
    run = invoke("new", "a" * 65, cwd=checkout)
    assert run.returncode == 2
    assert "a name has at most 64 characters, this one has 65" in run.stderr
    assert invoke("new", "a" * 64, cwd=checkout).returncode == 0
    longest = max(
        *(len(each.name) for each in Topics(prefix="x" * 100).detector("a" * LONGEST).contracts()),
        *(len(each.name) for each in Topics(prefix="x" * 100).shadow("a" * LONGEST, "dev-123456").contracts()),
    )
    assert longest <= 249


@pytest.mark.parametrize("kind", list(DetectorKind))
@pytest.mark.parametrize("key", list(AUTH.keys))
def test_new_declares_key_and_tables_and_is_complete(checkout: Path, tmp_path: Path, kind: str, key: str) -> None:
    lists = tmp_path / "lists"
    lists.mkdir()
    (lists / "mcc limits.csv").write_bytes(b"\xef\xbb\xbfmcc,a limit\r\n0742,100\r\n")
    pq.write_table(pa.table({"bin": ["400000"]}), lists / "bins.parquet")
    tables = [f"--table={lists / name}" for name in ("mcc limits.csv", "bins.parquet")]
    owner = 'Ann "the\\owl" Müller'
    run = invoke("new", "spotter", "--kind", kind, "--key", key, "--owner", owner, *tables, cwd=checkout)
    assert run.returncode == 0, run.stderr
    folder = checkout / "detectors" / "spotter"
    assert (folder / "mcc limits.csv").read_bytes() == (lists / "mcc limits.csv").read_bytes()
    assert problems(folder) == []
    _, _, declared = read(folder / "pyproject.toml")
    assert (declared.stream, declared.key or "card", declared.owner) == ("auth", key, owner)
    assert declared.tables["mcc limits"].columns == "mcc string, `a limit` string"
    assert declared.tables["bins"].columns == ""


@pytest.mark.parametrize("name", ["nowhere.csv", "folder.parquet", "latin.csv"])
def test_new_refuses_a_table_that_cannot_be_read_and_writes_nothing(checkout: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.parquet").mkdir()
    (tmp_path / "latin.csv").write_bytes(b"gr\xfc\xdfe\n")
    run = invoke("new", "spotter", "--table", str(tmp_path / name), cwd=checkout)
    assert (run.returncode, "reading table" in run.stderr) == (2, True), run.stderr
    assert not (checkout / "detectors" / "spotter").exists()


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("limits.csv", "mcc;limit\n5411;5\n", "commas separate columns, not ';'"),
        ("limits.csv", "mcc,mcc\n1,2\n", "mcc is there twice"),
        ("limits.csv", "", "its header names no column"),
        ("limits.csv", "mcc,limit\n5411\n", "line 2 has 1 fields, the header 2"),
        ("limits.json", "[]", "is no readable Parquet file"),
        ("limits.csv.gz", "x", "a .gz file is not read: unpack it"),
    ],
)
def test_new_refuses_a_table_that_no_job_could_read(
    checkout: Path, tmp_path: Path, name: str, content: str, why: str
) -> None:
    (tmp_path / name).write_text(content)
    run = invoke("new", "spotter", "--table", str(tmp_path / name), cwd=checkout)
    assert (run.returncode, why in run.stderr) == (2, True), run.stderr
    assert not (checkout / "detectors" / "spotter").exists()


@pytest.mark.parametrize("other", ["elsewhere/limits.csv", "limits.parquet"])
def test_new_refuses_two_tables_of_one_name(checkout: Path, tmp_path: Path, other: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    for file in ("limits.csv", "elsewhere/limits.csv"):
        (tmp_path / file).write_text("mcc\n5411\n")
    pq.write_table(pa.table({"mcc": ["5411"]}), tmp_path / "limits.parquet")
    tables = [f"--table={tmp_path / name}" for name in ("limits.csv", other)]
    run = invoke("new", "spotter", *tables, cwd=checkout)
    assert (run.returncode, "is there twice" in run.stderr) == (2, True), run.stderr


@pytest.mark.parametrize(
    "name", ["json", "class", "test", "tests", "conftest", "pytest", "python_dateutil", "lozenge", "upstream"]
)
def test_new_refuses_a_name_that_is_taken(checkout: Path, name: str) -> None:
    run = invoke("new", name, cwd=checkout)
    assert run.returncode == 2
    assert "has that name" in run.stderr
    assert list((checkout / "detectors").iterdir()) == []


def test_the_settings_of_a_new_detector_have_a_name_of_their_own(checkout: Path) -> None:
    made(checkout, "fold", "stateful")
    module = (checkout / "detectors" / "fold" / "fold.py").read_text()
    assert "class FoldSettings(Settings):" in module
    assert "settings=FoldSettings)" in module


def test_new_never_writes_over_a_folder(checkout: Path) -> None:
    made(checkout, "spotter")
    run = invoke("new", "spotter", cwd=checkout)
    assert run.returncode == 2
    assert "exists already" in run.stderr


def test_check_shows_every_problem(checkout: Path) -> None:
    made(checkout, "spotter")
    (checkout / "detectors" / "spotter" / "README.md").unlink()
    run = invoke("check", "spotter", cwd=checkout)
    assert run.returncode == 2
    assert "checking spotter: 1 problem(s)\n  - README.md: missing" in run.stderr
    run = invoke("check", "spotter", "-o", "json", cwd=checkout)
    assert [row["detector"] for row in json.loads(run.stdout)] == ["spotter"]


def test_check_tries_given_settings_with_the_detectors_own_code(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOZENGE_CACHE", str(tmp_path / "cache"))
    made(checkout, "spotter")
    install(checkout / "detectors" / "spotter", tested=False)
    run = invoke("check", "spotter", "--set", "limit=400", cwd=checkout)
    assert (run.returncode, "no problems" in run.stdout) == (0, True), run.stderr
    run = invoke("check", "spotter", "--set", "limit=much", "--set", "other=1", cwd=checkout)
    assert run.returncode == 2
    assert "limit: it must be a number" in run.stderr
    assert "other: there is no such setting" in run.stderr
    run = invoke("check", "spotter", "--set", "limit=much", "-o", "json", cwd=checkout)
    assert [row["level"] for row in json.loads(run.stdout)] == ["problem"]


def test_test_shows_each_test_and_a_line_for_each_fault(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOZENGE_CACHE", str(tmp_path / "cache"))
    made(checkout, "spotter")
    folder = checkout / "detectors" / "spotter"
    (folder / "test_spotter.py").write_text(TESTS)
    install(folder, tested=False)
    run = lozenge("test", "spotter", cwd=checkout)
    assert run.returncode == 1
    assert "testing spotter: its tests fail" in run.stderr
    rows = {words[0]: words[1:] for line in run.stdout.splitlines() if (words := line.split())}
    found = {fault: rows[fault][0] for fault in INVARIANTS}
    assert found == dict.fromkeys(INVARIANTS, "passed") | {"replayed": "failed"}
    assert " ".join(rows["replayed"]).endswith("1 with another reason")

    run = lozenge("test", "spotter", "-o", "json", cwd=checkout)
    outcomes = {verdict["test"]: verdict["outcome"] for verdict in json.loads(run.stdout)}
    assert outcomes == {"test_fires": "passed"} | {f"fault[{fault}]": outcome for fault, outcome in found.items()}

    run = lozenge("test", "spotter", "--", "-k", "not replayed", cwd=checkout)
    assert run.returncode == 0, run.stdout + run.stderr
    (folder / "test_spotter.py").unlink()
    run = lozenge("test", "spotter", cwd=checkout)
    assert (run.returncode, "it has no test_spotter.py" in run.stderr) == (2, True)


def test_tests_that_have_passed_are_a_proof_for_a_deploy_and_a_part_of_them_is_none(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOZENGE_CACHE", str(tmp_path / "cache"))
    made(checkout, "spotter")
    folder = checkout / "detectors" / "spotter"
    tests = folder / "test_spotter.py"
    tests.write_text("def test_fires():\n    pass\n\n\ndef test_stays_silent():\n    pass\n")
    python = install(folder, tested=False) / "bin" / "python"
    for arguments, proved in ((["--", "-k", "fires or silent"], False), ([], True)):
        run = lozenge("test", "spotter", *arguments, cwd=checkout)
        assert (run.returncode, proof_of(folder, python).exists()) == (0, proved), run.stdout + run.stderr
    tests.write_text(tests.read_text() + "\n\ndef test_more():\n    assert False\n")
    assert not proof_of(folder, python).exists(), "of other tests there is no proof"
    run = lozenge("test", "spotter", cwd=checkout)
    assert (run.returncode, proof_of(folder, python).exists()) == (1, False)


@pytest.mark.parametrize("verb", ["test", "try", "dev", "plan", "deploy"])
def test_every_verb_that_runs_a_folder_first_refuses_what_a_job_could_not_run(checkout: Path, verb: str) -> None:
    made(checkout, "spotter")
    module = checkout / "detectors" / "spotter" / "spotter.py"
    module.write_text(f"from features import LIMIT\n{module.read_text()}")
    (module.parent / "features.py").write_text("LIMIT = 1\n")
    run = invoke(verb, "spotter", cwd=checkout, LOZENGE_KAFKA_BOOTSTRAP="127.0.0.1:9")
    assert run.returncode == 2
    assert "spotter.py: line 1: the folder is the package spotter: write `from .features import" in run.stderr

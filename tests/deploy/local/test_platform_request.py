"""What is asked of the platform on this machine: remembered, applied or refused, and shown."""

import json
import os
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from lozenge.errors import UsageError
from lozenge.kafka.settings import KafkaSettings
from lozenge.streams.folder import write_copy
from lozenge.streams.project import STREAMS_VARIABLE, Streams
from lozenge_deploy.cli import local
from lozenge_deploy.local.declared_programs import DeclaredProgram
from lozenge_deploy.local.platform import apply_programs, newest_request, programs, read_again, remerged
from lozenge_deploy.local.platform_request import FILE, Requested, request, requested
from lozenge_deploy.supervision.log_shipper import Shipper
from lozenge_deploy.supervision.supervisor import Program, Supervisor
from tests.deploy.command import invoke
from tests.streams import AUTH, STREAMS

LOGIN = STREAMS.get("login")
KAFKA = KafkaSettings(bootstrap="127.0.0.1:1")


def test_a_request_is_remembered_and_the_next_one_changes_only_what_it_names(tmp_path: Path) -> None:
    assert requested(tmp_path) == Requested()
    request(tmp_path, feed=50.0, port=19092)
    count = {"upstream": 2}
    assert request(tmp_path, normalisers=count) == requested(tmp_path) == Requested(19092, 50.0, "", count)


@pytest.mark.parametrize(
    "text", ["", "[]", "null", '{"feed": "fast"}', '{"normalisers": {"upstream": 0}}', '{"port": 99999}', "\ufeff{}"]
)
def test_a_file_that_cannot_be_read_is_named_and_changes_nothing_of_what_runs(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(UsageError, match=FILE):
        requested(tmp_path)
    assert newest_request(tmp_path, Requested(feed=5.0)) == Requested(feed=5.0)
    run = invoke("up", "--folder", str(tmp_path), "--dry-run", cwd=tmp_path)
    assert (run.returncode, FILE in run.stderr) == (2, True)


def test_feed_and_routing_file_are_programs_and_variables(tmp_path: Path) -> None:
    assert "feed" not in programs(tmp_path, KAFKA, STREAMS, (), Requested())
    found = programs(tmp_path, KAFKA, STREAMS, (), Requested(feed=50.0, routing="/r.toml"))
    assert list(found["feed"].command)[-2:] == ["--rate", "50"]
    assert found["downstream"].environment(0)["LOZENGE_DOWNSTREAM_ROUTING"] == "/r.toml"


def test_what_is_declared_is_a_program_with_the_folder_of_tables(tmp_path: Path) -> None:
    declared = {"sink-archive": DeclaredProgram(("lozenge.sink", "archive"), 1)}
    sink = programs(tmp_path, KAFKA, STREAMS, (), Requested(), declared)["sink-archive"]
    assert sink.command[-2:] == ["lozenge.sink", "archive"]
    assert sink.environment(0)["LOZENGE_ARCHIVE"] == str(tmp_path / "archive")


def test_what_has_changed_is_started_again_and_the_rest_keeps_its_process(tmp_path: Path) -> None:
    def wanted(*names: str) -> dict[str, Program]:
        return {name: Program(name, ["sleep", "600"], lambda _: os.environ, tmp_path) for name in names}

    with Supervisor(tmp_path / "logs") as supervisor, closing(Shipper(KAFKA)) as shipper:
        apply_programs(wanted("downstream", "feed"), supervisor, shipper)
        pids = {name: child.pid for name, child in supervisor.children.items()}
        changed = Requested(feed=5.0).programs_changed(Requested())
        apply_programs(wanted("downstream", "feed"), supervisor, shipper, changed)
        assert supervisor.children["downstream"].pid == pids["downstream"]
        assert supervisor.children["feed"].pid != pids["feed"]
        assert Requested(routing="/r").programs_changed(Requested()) == {"downstream"}
        apply_programs(wanted("downstream"), supervisor, shipper, {"feed"})
        assert list(supervisor.children) == ["downstream"]


@pytest.fixture
def platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a platform that runs, and does at once what is requested."""

    def running(folder: Path) -> dict[str, Any]:
        now = json.loads(json.dumps(asdict(requested(folder))))
        return {"pid": 1, "bootstrap": "127.0.0.1:9092", "programs": {}, "failed": {}, "requested": now}

    monkeypatch.setattr(local, "running", running)
    return tmp_path


def up(folder: Path, *arguments: str) -> tuple[int, str]:
    run = invoke("up", "--folder", str(folder), *arguments, cwd=folder, LOZENGE_DOWNSTREAM_ROUTING="")
    return run.returncode, run.stdout + run.stderr


def test_a_feed_for_a_running_platform_takes_effect_is_shown_and_is_kept(platform: Path) -> None:
    code, said = up(platform, "--feed", "50")
    assert (code, "50 generated records per second" in said) == (0, True)
    assert requested(platform).feed == 50.0
    code, said = up(platform)
    assert (code, "no change: 50 generated records per second" in said) == (0, True)
    code, said = up(platform, "--feed", "0")
    assert (code, "no generated records" in said, requested(platform).feed) == (0, True, 0.0)


def test_a_broker_that_commands_do_not_find_by_themselves_is_said(platform: Path) -> None:
    assert "export" not in up(platform)[1]
    run = invoke("up", "--folder", str(platform), cwd=platform, LOZENGE_KAFKA_BOOTSTRAP="127.0.0.1:19092")
    assert "after `export LOZENGE_KAFKA_BOOTSTRAP=127.0.0.1:9092`" in run.stderr


def test_a_stream_that_is_new_is_normalised_by_a_running_platform(platform: Path) -> None:
    streams = platform / "streams"
    write_copy(AUTH, streams)

    def again() -> tuple[int, str]:
        run = invoke("up", "--folder", str(platform), cwd=platform, **{STREAMS_VARIABLE: str(streams)})
        return run.returncode, run.stdout + run.stderr

    assert again()[0] == 0
    assert requested(platform).streams == ["auth"]
    write_copy(LOGIN, streams)
    code, said = again()
    assert (code, "new streams: login" in said, requested(platform).streams) == (0, True, ["auth", "login"])
    assert "no change" in again()[1]
    (streams / "draft").mkdir()
    (streams / "draft" / "stream.toml").write_text("x = [")
    code, said = again()
    assert (code != 0, "draft/stream.toml: not TOML" in said) == (True, True)
    assert requested(platform).streams == ["auth", "login"]


def test_streams_are_read_again_unless_one_is_wrong_and_normalisers_merge_by_new_keys(tmp_path: Path) -> None:
    write_copy(AUTH, tmp_path)
    before = Streams.of(tmp_path)
    write_copy(LOGIN, tmp_path)
    after = read_again(before)
    assert after == Streams.of(tmp_path) != before
    assert remerged(before, after, None) == {AUTH.app}
    assert remerged(before, after, ()) == remerged(after, after, None) == set()
    assert {AUTH.app, LOGIN.app} <= programs(tmp_path, KAFKA, after, None, Requested()).keys()
    (tmp_path / "claims").mkdir()
    (tmp_path / "claims" / "stream.toml").write_text("x = [")
    assert read_again(after) == after


def test_a_dry_run_on_a_running_platform_changes_nothing(platform: Path) -> None:
    code, said = up(platform, "--feed", "50", "--dry-run")
    assert (code, "would change to 50 generated" in said, requested(platform).feed) == (0, True, 0.0)


def test_another_port_for_a_running_platform_is_refused(platform: Path) -> None:
    code, said = up(platform, "--port", "9999")
    assert (code, "it runs at 127.0.0.1:9092" in said, "`lozenge down` first" in said) == (2, True, True)
    assert up(platform, "--port", "9092")[0] == 0


def test_a_routing_file_for_a_running_platform_is_used_if_the_notifier_accepts_it(platform: Path) -> None:
    sound, broken = platform / "sound.toml", platform / "broken.toml"
    sound.write_text('[channels.ops]\ntype = "kafka"\ntopic = "ops"\n[route]\nchannels = ["ops"]\n')
    broken.write_text("[route\n")
    code, said = up(platform, "--routing", str(broken))
    assert (code, requested(platform).routing) == (2, ""), said
    code, said = up(platform, "--routing", str(sound))
    assert (code, requested(platform).routing) == (0, str(sound)), said
    assert str(sound) in said
    assert up(platform, "--routing", "")[0] == 0
    assert requested(platform).routing == ""


@pytest.mark.parametrize("option", [["--feed", "nan"], ["--feed", "inf"], ["--feed", "-1"], ["--port", "70000"]])
def test_a_value_that_means_nothing_is_refused(platform: Path, option: list[str]) -> None:
    assert up(platform, *option)[0] == 2


def test_what_was_requested_before_is_shown_before_a_start(tmp_path: Path) -> None:
    request(tmp_path, feed=50.0, port=19092)
    run = invoke("up", "--folder", str(tmp_path), "--dry-run", "-o", "json", cwd=tmp_path)
    [row] = json.loads(run.stdout)
    assert (row["bootstrap"], row["requested"]["feed"]) == ("127.0.0.1:19092", 50.0)

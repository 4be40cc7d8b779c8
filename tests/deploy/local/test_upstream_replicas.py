"""How many instances of a normaliser run on this machine."""

import json
import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from lozenge.kafka.settings import KafkaSettings
from lozenge.streams.definition import StreamDefinition
from lozenge_deploy.local.platform import apply_programs, programs
from lozenge_deploy.local.platform_request import Requested, requested
from lozenge_deploy.local.upstream_replicas import app_of_program, instance_names
from lozenge_deploy.supervision.log_shipper import Shipper
from lozenge_deploy.supervision.supervisor import Program, Supervisor
from tests.deploy.command import lozenge
from tests.streams import AUTH, STREAMS

KAFKA = KafkaSettings(bootstrap="127.0.0.1:1")


def test_a_requested_count_is_shown_and_kept_for_every_later_start(tmp_path: Path) -> None:
    assert requested(tmp_path).instances("upstream") == 1
    (tmp_path / "platform.json").write_text('{"pid": 0}')
    for arguments, before, now in ((["2"], 1, 2), (["3", "--dry-run"], 2, 2)):
        run = lozenge("scale", "upstream", "--instances", *arguments, "--folder", ".", "-o", "json", cwd=tmp_path)
        assert (run.returncode, json.loads(run.stdout)[0]["before"], requested(tmp_path).normalisers) == (
            0,
            before,
            {"upstream": now},
        )


@pytest.mark.parametrize(("count", "because"), [("2", "is not a platform's folder"), ("9", "it reads 4 partitions")])
def test_an_impossible_count_is_refused(count: str, because: str, tmp_path: Path) -> None:
    run = lozenge("scale", "upstream", "--instances", count, "--folder", ".", cwd=tmp_path)
    assert (run.returncode, because in run.stderr) == (2, True)
    assert requested(tmp_path).normalisers == {}


def test_a_normaliser_that_no_stream_has_is_refused(tmp_path: Path) -> None:
    run = lozenge("scale", "upstream-claims", "--instances", "2", "--folder", ".", cwd=tmp_path)
    assert (run.returncode, "no stream has that normaliser" in run.stderr) == (2, True)


def test_every_instance_is_a_program(tmp_path: Path) -> None:
    login = AUTH.model_copy(update={"name": "login", "app": "upstream-login"})
    streams = replace(STREAMS, sound=(AUTH, login))

    def upstreams(wanted: Requested) -> dict[str, str]:
        found = programs(tmp_path, KAFKA, streams, ("terminal",), wanted)
        ours = {name: program for name, program in found.items() if name.startswith("upstream")}
        return {name: program.environment(0)["LOZENGE_UPSTREAM_STREAM"] for name, program in ours.items()}

    of_login = {"upstream-login": "login", "upstream-login-2": "login"}
    wanted = Requested(normalisers={"upstream-login": 2})
    assert upstreams(wanted) == {"upstream": "auth", **of_login}
    assert upstreams(replace(wanted, held="upstream")) == of_login
    assert {app_of_program(name) for name in of_login} == {"upstream-login"}
    assert [app_of_program(name) for name in ("upstream", "upstream-3", "agent")] == ["upstream", "upstream", "agent"]


def test_streams_are_merged_by_the_keys_that_they_share(tmp_path: Path) -> None:
    login = AUTH.model_copy(update={"name": "login", "app": "upstream-login", "keys": {"card": "card_id"}})

    def merges(*definitions: StreamDefinition, rekeys: tuple[str, ...] | None = None) -> list[str]:
        found = programs(tmp_path, KAFKA, replace(STREAMS, sound=definitions), rekeys, Requested())
        ours = (program for name, program in found.items() if name.startswith("upstream"))
        return [program.environment(0)["LOZENGE_UPSTREAM_MERGES"] for program in ours]

    assert merges(AUTH, login) == ['["card"]', '["card"]']
    assert merges(AUTH, login, rekeys=()) == ["[]", "[]"]
    assert merges(AUTH) == ["[]"]


def test_instances_start_and_stop_and_the_others_keep_their_process(tmp_path: Path) -> None:
    def wanted(count: int) -> dict[str, Program]:
        return {
            n: Program(n, ["sleep", "600"], lambda _: os.environ, tmp_path) for n in instance_names("upstream", count)
        }

    with Supervisor(tmp_path / "logs") as supervisor, closing(Shipper(KafkaSettings(bootstrap="127.0.0.1:1"))) as logs:
        apply_programs(wanted(1), supervisor, logs)
        pid = supervisor.children["upstream"].pid
        for count in (3, 2):
            apply_programs(wanted(count), supervisor, logs)
            assert list(supervisor.children) == instance_names("upstream", count)
            assert supervisor.children["upstream"].pid == pid

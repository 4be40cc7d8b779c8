"""A stream whose folder was deleted: what the platform keeps of it answers, and errors say what to do."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lozenge.kafka.direct_write import write_directly
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.stream_releases import FOLDER, StreamDeployment, StreamRelease, StreamReport, StreamRow, record
from lozenge.streams.project import STREAMS_VARIABLE
from lozenge.streams.release_files import files_of
from tests.deploy.command import invoke
from tests.streams import FOLDER as STREAMS
from tests.streams import with_json_alone

pytestmark = pytest.mark.integration

FILES = files_of(STREAMS / "login")
Asked = Callable[..., Any]


@pytest.fixture
def asked(kafka: KafkaSettings, tmp_path: Path) -> Asked:
    """What becomes of a command on streams in a project that has another stream alone."""
    streams = with_json_alone(tmp_path)
    shutil.rmtree(streams / "login")

    def ask(*arguments: str) -> Any:
        return invoke("stream", *arguments, cwd=tmp_path, **kafka.variables, **{STREAMS_VARIABLE: str(streams)})

    return ask


def keep(kafka: KafkaSettings, *rows: StreamRow) -> None:
    assert not write_directly(kafka, [record(kafka.topics.control.streams, row) for row in rows])


def test_the_platform_answers_for_a_stream_that_has_no_folder_any_more(kafka: KafkaSettings, asked: Asked) -> None:
    assert "there is no stream login" in asked("releases", "login").stderr
    keep(kafka, StreamRelease("login", FOLDER, FILES, "upstream"))
    run = asked("deploy", "login")
    assert (run.returncode, "login has no folder there any more, and folder is in force" in run.stderr) == (2, True)
    assert "needs the folder when it starts again" in run.stderr
    assert "nothing was ever deployed" in asked("rollback", "login").stderr

    for number in (1, 2):
        request = StreamDeployment("login", f"rev{number}", number)
        keep(kafka, StreamRelease("login", number, FILES), request, StreamReport("login", request.revision, number))
    rows = json.loads(asked("releases", "login", "-o", "json").stdout)
    assert [(row["release"], row["state"]) for row in rows] == [("r2", "in force"), ("r1", None)]
    assert "no upstream has run for login" in asked("history", "login").stderr
    for command in ("plan", "deploy"):
        run = asked(command, "login")
        assert (run.returncode, "no folder there any more, and r2 is in force" in run.stderr) == (2, True)
        assert "`lozenge stream rollback login` puts an earlier release in force without it" in run.stderr
    run = asked("rollback", "login", "--no-wait", "-o", "json")
    assert (run.returncode, json.loads(run.stdout)[0]["release"]) == (0, "r1"), run.stderr

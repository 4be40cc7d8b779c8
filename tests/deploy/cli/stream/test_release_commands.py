"""A stream that there is not is named with those that there are, also where no platform could say so."""

from pathlib import Path

import pytest

from lozenge.errors import UsageError
from lozenge.streams.project import STREAMS_VARIABLE
from lozenge_deploy.cli.stream.release_commands import require_stream
from tests.deploy.command import invoke
from tests.streams import FOLDER, with_json_alone


@pytest.mark.parametrize("command", ["plan", "deploy", "releases", "history"])
def test_a_wrong_name_is_an_error_of_usage_before_a_broker_is_asked(command: str, tmp_path: Path) -> None:
    run = invoke("stream", command, "claims", cwd=tmp_path, LOZENGE_STREAMS=str(FOLDER))
    assert run.returncode == 2
    assert "there is no stream claims" in run.stderr
    assert "name one of auth, login" in run.stderr


def test_a_rollback_needs_the_name_of_a_stream_but_no_sound_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(STREAMS_VARIABLE, str(with_json_alone(tmp_path)))
    with pytest.raises(UsageError, match="there is no stream claims"):
        require_stream("claims")
    (tmp_path / "streams" / "auth" / "event.avsc").write_text("{", "utf-8")
    require_stream("auth")


def test_outside_of_a_project_the_platform_alone_knows_the_streams(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(STREAMS_VARIABLE, str(tmp_path / "nowhere"))
    require_stream("claims")

"""Which folder has the streams of a process, and which of them is meant."""

from pathlib import Path

import pytest

from lozenge.errors import ConfigError, UsageError
from lozenge.streams.definition import StreamDefinition
from lozenge.streams.folder import write_copy
from lozenge.streams.project import STREAMS_VARIABLE, Streams, streams_folder
from tests.streams import AUTH, FOLDER


@pytest.fixture(autouse=True)
def _no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(STREAMS_VARIABLE)


def unnamed(stream: StreamDefinition) -> StreamDefinition:
    return stream.model_copy(update={"default": False})


def other(name: str, record: str, topic: str, app: str, source: str) -> StreamDefinition:
    avro = AUTH.avro | {"name": record}
    changed = {"name": name, "avro": avro, "raw_topics": (topic,), "sources": (source,), "app": app, "default": False}
    return AUTH.model_copy(update=changed)


def test_they_are_those_of_the_project_around_the_present_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER.parents[1] / "detectors")
    assert Streams.load().get() == AUTH


def test_or_of_the_project_around_the_detector(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert streams_folder(FOLDER.parents[1] / "detectors" / "large_amount") == FOLDER
    with pytest.raises(ConfigError, match=r"neither .* nor a folder above has upstream/streams"):
        streams_folder()


def test_or_of_the_folder_that_the_setting_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_copy(AUTH, tmp_path)
    monkeypatch.setenv(STREAMS_VARIABLE, str(tmp_path))
    assert Streams.load() == Streams(tmp_path, (AUTH,))
    monkeypatch.setenv(STREAMS_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match=r"LOZENGE_STREAMS: .*nowhere is no folder"):
        Streams.load()


def test_of_several_one_has_to_be_named(tmp_path: Path) -> None:
    for each in (unnamed(AUTH), other("login", "Login", "LOGIN", "upstream-login", "login_json")):
        write_copy(each, tmp_path)
    streams = Streams.of(tmp_path)
    assert streams.get("auth") == unnamed(AUTH)
    for name in ("", "claims"):
        with pytest.raises(UsageError, match="name one of auth, login"):
            streams.get(name)


def test_unless_one_is_the_default(tmp_path: Path) -> None:
    second = other("login", "Login", "LOGIN", "upstream-login", "login_json")
    for each in (unnamed(AUTH), second.model_copy(update={"default": True})):
        write_copy(each, tmp_path)
    assert Streams.of(tmp_path).get().name == "login"


def test_two_defaults_are_refused(tmp_path: Path) -> None:
    second = other("login", "Login", "LOGIN", "upstream-login", "login_json")
    for each in (AUTH, second.model_copy(update={"default": True})):
        write_copy(each, tmp_path)
    with pytest.raises(ConfigError) as refused:
        Streams.of(tmp_path)
    assert list(refused.value.problems) == ["login/stream.toml: default: auth is the default too"]


def test_two_streams_that_would_write_over_each_other_are_refused(tmp_path: Path) -> None:
    for each in (AUTH, other("login", AUTH.avro["name"], "AUTH-JSON", AUTH.app, AUTH.sources[0])):
        write_copy(each, tmp_path)
    with pytest.raises(ConfigError) as refused:
        Streams.of(tmp_path)
    assert [problem.partition(":")[0] for problem in refused.value.problems] == [
        "login/event.avsc",
        "login/mappings",
        "login/mappings",
        "login/stream.toml",
    ]


def test_a_stream_that_is_wrong_is_no_problem_of_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STREAMS_VARIABLE, str(tmp_path))
    for each in (AUTH, other("login", "Login", "LOGIN", "upstream-login", "login_json")):
        write_copy(each, tmp_path)
    (tmp_path / "draft").mkdir()
    (tmp_path / "draft" / "stream.toml").write_text("x = [")
    streams = Streams.load()
    assert streams.get() == streams.get("auth") == streams.of_app("upstream") == AUTH
    for wrong in (lambda: streams.get("draft"), lambda: streams.of_app("upstream-draft"), lambda: streams.definitions):
        with pytest.raises(ConfigError) as refused:
            wrong()
        assert [problem.partition(":")[0] for problem in refused.value.problems] == [
            "draft/stream.toml",
            "draft/event.avsc",
        ]
    with pytest.raises(UsageError, match="name one of auth, login"):
        streams.get("claims")


def test_of_two_streams_that_clash_either_may_be_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STREAMS_VARIABLE, str(tmp_path))
    for name in ("one", "two"):
        write_copy(other(name, "Same", name, f"upstream-{name}", name), tmp_path)
    write_copy(AUTH, tmp_path)
    streams = Streams.load()
    assert streams.get("auth") == AUTH
    for name in ("one", "two"):
        with pytest.raises(ConfigError, match="one has a record"):
            streams.get(name)


def test_a_normaliser_names_its_stream() -> None:
    streams = Streams.of(FOLDER)
    assert streams.of_app("upstream") == AUTH
    with pytest.raises(UsageError, match="no stream has that normaliser"):
        streams.of_app("upstream-claims")


def test_a_folder_without_streams_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="it has none"):
        Streams.of(tmp_path)

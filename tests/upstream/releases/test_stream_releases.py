"""A requested release is in force once all of it is good; a bad one changes nothing and is answered with problems."""

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pytest
from structlog.testing import capture_logs

from lozenge.contracts.record import Record
from lozenge.errors import BrokerUnavailable, ConfigError
from lozenge.kafka.settings import KafkaSettings
from lozenge.process.waiting import wait_until
from lozenge.protocol.stream_releases import (
    ReleaseId,
    StreamDeployment,
    StreamRelease,
    StreamReport,
    StreamState,
    decode,
    release_name,
)
from lozenge_upstream.normalise.mapping_files import Mappings, RefusedMapping
from lozenge_upstream.releases import stream_releases
from lozenge_upstream.releases.read_release import UpstreamRelease
from lozenge_upstream.releases.stream_releases import StreamReleases
from tests.upstream.samples import ISO, JSON, target

KAFKA = KafkaSettings(bootstrap="127.0.0.1:1")
WRONG = RefusedMapping("wallet", "WALLET", ("wallet.toml: not TOML",))
PARTITIONS = {"AUTH-JSON": 4, "AUTH-ISO": 4, KAFKA.topics.control.streams: 1}


class Read(UpstreamRelease):
    """A release that was read; the session finds nothing more."""

    def checked(self, spark: Any) -> UpstreamRelease:
        return self


@dataclass
class Scene:
    """What the control topic says, what a release is when it is read, and what was answered."""

    state: StreamState
    found: dict[int, Any]
    answers: list[StreamReport]
    refusing: list[bool]
    kept: list[StreamRelease] = field(default_factory=list)
    texts: Mapping[str, str] = field(default_factory=dict)

    def poll(self) -> StreamState:
        return self.state

    def read(self, state: StreamState, number: int) -> UpstreamRelease:
        what = self.found[number]
        if isinstance(what, Exception):
            raise what
        texts = {} if number else self.texts
        return Read(number, ReleaseId(release_name(number), f"d{number}"), target(), what, PARTITIONS, texts)

    def ask(self, release: int, fallback: int = 0, revision: str = "rev") -> None:
        self.state = StreamState("auth", StreamDeployment("auth", revision, release, fallback), self.state.report)

    def write(self, kafka: KafkaSettings, records: list[Record]) -> str:
        [written] = records
        report = decode(written.key or b"", written.value or b"")
        if isinstance(report, StreamRelease):
            self.kept.append(report)
            self.state = StreamState("auth", folder=report)
            return ""
        assert isinstance(report, StreamReport)
        self.answers.append(report)
        self.state = StreamState("auth", self.state.deployment, report)
        return ""

    def releases(self) -> StreamReleases:
        scene: Any = self
        return StreamReleases(KAFKA, scene, scene, self.refusing.append)

    def begun(self, slots: int | None = None) -> StreamReleases:
        releases, starting = self.releases(), Future[Any]()
        starting.set_result(None)
        releases.begin(starting, slots, releases.first())
        return releases

    def settled(self, releases: StreamReleases) -> bool:
        """Polls until what was requested is answered or ready; whether another release is ready."""
        assert wait_until(lambda: releases.poll() or self.state.answer is not None, 20)
        return releases.poll()


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Releases 0 to 2 are good, the third has a wrong mapping, the fourth is no stream."""
    good, other = Mappings([JSON], []), Mappings([ISO, JSON], [])
    found = {0: good, 1: good, 2: other, 3: Mappings([JSON], [WRONG]), 4: ConfigError("x", problems=["stream.toml: y"])}
    made = Scene(StreamState("auth"), found, [], [])
    monkeypatch.setattr(stream_releases, "settle_ids", lambda *_: [])
    monkeypatch.setattr(stream_releases, "write_directly", made.write)
    return made


def test_without_a_request_the_folder_runs_and_nothing_is_answered(scene: Scene) -> None:
    releases = scene.begun()
    assert not releases.poll()
    assert (releases.in_force.number, scene.answers) == (0, [])


def test_the_folder_that_runs_is_kept_until_something_is_requested(scene: Scene) -> None:
    scene.texts = {"stream.toml": "x"}
    for _ in range(2):
        scene.begun()
    assert [(each.number, each.files) for each in scene.kept] == [(0, {"stream.toml": "x"})], "it is kept once"
    scene.texts = {"stream.toml": "y"}
    scene.begun()
    assert [each.files for each in scene.kept] == [{"stream.toml": "x"}, {"stream.toml": "y"}]
    scene.ask(1)
    scene.texts = {"stream.toml": "z"}
    scene.begun()
    assert len(scene.kept) == 2


def test_a_good_release_is_ready_is_taken_and_then_answered(scene: Scene) -> None:
    releases = scene.begun()
    scene.ask(2)
    assert scene.settled(releases)
    assert (releases.in_force.number, scene.answers) == (0, []), "until it is taken the other one runs"
    assert releases.take().number == 2
    assert not scene.settled(releases)
    assert [(each.release, each.problems) for each in scene.answers] == [(2, ())]
    assert releases.in_force.topics == ["AUTH-ISO", "AUTH-JSON"]


@pytest.mark.parametrize(("release", "problem"), [(3, "wallet.toml: not TOML"), (4, "stream.toml: y")])
def test_a_bad_release_never_replaces_a_good_one(scene: Scene, release: int, problem: str) -> None:
    releases = scene.begun()
    scene.ask(release)
    with capture_logs() as lines:
        assert not scene.settled(releases)
    assert releases.in_force.number == 0
    assert [(each.release, each.problems) for each in scene.answers] == [(release, (problem,))]
    [said] = [line for line in lines if line["log_level"] == "error"]
    assert said["event"] == f"release r{release} of the stream auth is refused; the last good one runs"
    assert said["problems"] == (problem,)
    assert scene.refusing[-1]
    scene.ask(1, revision="rev-2")
    assert scene.settled(releases)
    releases.take()
    scene.settled(releases)
    assert (scene.refusing[-1], releases.in_force.number) == (False, 1)


def test_an_error_that_nobody_expects_is_a_refusal_too(scene: Scene) -> None:
    releases = scene.begun()
    scene.found[2] = RuntimeError("the JVM says no")
    scene.ask(2)
    assert not scene.settled(releases)
    assert scene.answers[0].problems == ("RuntimeError: the JVM says no",)


def test_a_broker_that_is_away_refuses_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_releases, "RETRY_SECONDS", 0.0)
    releases, good = scene.begun(), scene.found[2]
    scene.found[2] = BrokerUnavailable("no broker")
    scene.ask(2)
    for _ in range(20):
        assert not releases.poll()
    scene.found[2] = good
    assert scene.settled(releases)
    assert scene.answers == []


def test_a_release_that_needs_more_task_slots_than_there_are_is_refused(scene: Scene) -> None:
    releases = scene.begun(slots=4)
    scene.ask(2)
    assert not scene.settled(releases)
    assert "it reads 8 raw partitions, and this process has 4 task slots" in scene.answers[0].problems[0]


@pytest.mark.parametrize("release", [3, 4])
def test_a_start_with_a_bad_release_runs_its_fallback(scene: Scene, release: int) -> None:
    scene.ask(release, fallback=1)
    releases = scene.begun()
    assert releases.in_force.number == 1
    assert not scene.settled(releases)
    assert [(each.release, bool(each.problems)) for each in scene.answers] == [(release, True)]
    assert scene.begun().in_force.number == 1, "another start does not try it again"
    assert len(scene.answers) == 1


def test_a_release_that_was_in_force_runs_again_without_its_wrong_mapping(scene: Scene) -> None:
    scene.ask(3, fallback=1)
    scene.state = StreamState("auth", scene.state.deployment, StreamReport("auth", "rev", 3))
    assert scene.begun().in_force.number == 3


def test_what_another_instance_refuses_is_given_back(scene: Scene) -> None:
    scene.ask(2, fallback=1)
    releases = scene.begun()
    assert releases.in_force.number == 2
    scene.state = StreamState("auth", scene.state.deployment, StreamReport("auth", "rev", 2, ("no topic",)))
    assert wait_until(releases.poll, 20)
    assert releases.take().number == 1


def test_a_release_is_known_by_its_name_and_digest(scene: Scene) -> None:
    releases = scene.begun()
    assert releases.known(ReleaseId("folder", "other")) is None
    found = releases.known(ReleaseId("folder", "d0"))
    assert found is not None
    assert found.number == 0

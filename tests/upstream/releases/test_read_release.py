"""A release that cannot be read says why, before Spark starts."""

import socket
from functools import partial

import pytest

from lozenge.errors import BrokerUnavailable, ConfigError
from lozenge.kafka import topic_admin
from lozenge.kafka.settings import KafkaSettings
from lozenge.protocol.stream_releases import FOLDER as NO_RELEASE
from lozenge.protocol.stream_releases import StreamDeployment, StreamRelease, StreamState
from lozenge.streams.release_files import files_of
from lozenge_upstream.normalise.mapping_files import Mappings, RefusedMapping
from lozenge_upstream.releases.read_release import ReleaseReader, UpstreamRelease
from tests.streams import FOLDER, RELEASE, output
from tests.upstream.samples import ISO, JSON, target

JSON_TOPICS = "AUTH-JSON", "AUTH-ISO"
UNKNOWN = KafkaSettings(bootstrap="127.0.0.1:1")


def reader(kafka: KafkaSettings) -> ReleaseReader:
    return ReleaseReader(kafka, FOLDER / "auth", lambda _: output(kafka))


def test_without_a_broker_nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_admin, "partitions", partial(topic_admin.partitions, timeout=0.2))
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        kafka = KafkaSettings(bootstrap=f"127.0.0.1:{closed.getsockname()[1]}")
        with pytest.raises(BrokerUnavailable, match="no Kafka broker answers"):
            reader(kafka).read(StreamState("auth"), NO_RELEASE)


def test_a_release_that_is_not_kept_is_named() -> None:
    with pytest.raises(ConfigError, match="reading release r7 of the stream auth: it is not kept"):
        reader(UNKNOWN).read(StreamState("auth"), 7)


def test_after_a_request_the_folder_is_the_one_that_ran_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    there = dict.fromkeys((*JSON_TOPICS, *(topic.name for topic in output(UNKNOWN).contracts())), 4)
    monkeypatch.setattr(topic_admin, "partitions", lambda *_: there)
    monkeypatch.setattr(topic_admin, "check_topics", lambda *_: None)
    now = reader(UNKNOWN).read(StreamState("auth"), NO_RELEASE)
    assert dict(now.texts) == files_of(FOLDER / "auth")
    texts = dict(list(now.texts.items())[:-1])  # without its last mapping
    kept = StreamRelease("auth", NO_RELEASE, texts)
    deployed = StreamState("auth", StreamDeployment("auth", "rev", 1), folder=kept)
    before = reader(UNKNOWN).read(deployed, NO_RELEASE)
    assert (before.id, dict(before.texts)) == (kept.id, {})
    assert before.id != now.id
    assert len(before.mappings.usable) == len(now.mappings.usable) - 1


def test_the_raw_topics_of_wrong_mappings_wait_if_they_exist() -> None:
    refused = [RefusedMapping("wallet", "WALLET", ("a", "b")), RefusedMapping("old", "GONE", ("c",))]
    partitions = {"AUTH-JSON": 4, "AUTH-ISO": 3, "WALLET": 4}
    release = UpstreamRelease(1, RELEASE, target(), Mappings([ISO, JSON], refused), partitions)
    assert release.topics == ["AUTH-ISO", "AUTH-JSON", "WALLET"]
    assert release.waiting == {"WALLET"}
    assert release.problems == ("a", "b", "c")
    assert release.slots == 7

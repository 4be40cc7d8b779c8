"""What the detectors of a project want of upstream: copies by other keys, and merged topics."""

from pathlib import Path

from lozenge.contracts.topics import Topics
from lozenge.detector.manifest import Manifest
from lozenge.streams.definition import StreamDefinition
from lozenge_deploy.local.compose import override
from lozenge_deploy.releases.detector_catalog import DetectorFolder, merges_of, rekeys_of, streams_of, topics_of
from tests.alert_streams import LARGE
from tests.merged_streams import BY_ACCOUNT, SIGN_IN
from tests.streams import AUTH


def detector(name: str, stream: StreamDefinition, key: str = "") -> DetectorFolder:
    declared = {"kind": "rule", "owner": "o", "title": "t", "key": key}
    return DetectorFolder(name, "1.0", Manifest.model_validate(declared), Path(name), stream)


ONE, TWO = detector("one", AUTH, "merchant"), detector("two", BY_ACCOUNT, "account")
STREAMS = [AUTH, SIGN_IN]


def test_a_detector_of_several_streams_wants_them_merged_and_no_copy() -> None:
    assert [rekeys_of(stream, [ONE, TWO]) for stream in STREAMS] == [("merchant", "terminal"), ()]
    assert [merges_of(stream, [ONE, TWO]) for stream in STREAMS] == [("account",), ("account",)]
    assert [merges_of(stream, [ONE]) for stream in STREAMS] == [(), ()]
    assert streams_of([TWO]) == streams_of([ONE, TWO]) == STREAMS


def test_the_merged_topic_is_one_of_the_topics() -> None:
    topics = Topics("acme.")
    names = [topic.name for topic in topics_of(topics, STREAMS, [ONE, TWO])]
    assert len(names) == len(set(names))
    assert topics.merged("account") in names
    assert TWO.input(topics) == topics.merged("account")
    assert topics.merged("account") not in [topic.name for topic in topics_of(topics, STREAMS, [ONE])]


def test_in_compose_each_normaliser_merges_what_they_read() -> None:
    variable, services = "LOZENGE_UPSTREAM_MERGES", override(STREAMS, [ONE, TWO])["services"]
    assert [services[stream.app]["environment"][variable] for stream in STREAMS] == ['["account"]'] * 2
    assert override(STREAMS, [ONE])["services"][AUTH.app]["environment"][variable] == "[]"


def test_a_detector_of_alerts_wants_nothing_of_upstream() -> None:
    three, topics = detector("three", LARGE, "card"), Topics("acme.")
    assert three.input(topics) == "acme.pay.alerts.large_amount.v1"
    assert streams_of([ONE, three]) == [AUTH]
    assert topics_of(topics, STREAMS, [ONE, three]) == topics_of(topics, STREAMS, [ONE])

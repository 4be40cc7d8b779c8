"""A live job has the names of its detector; any other job has names that can never meet those."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lozenge import Detector, Settings
from lozenge.contracts.topics import Topics
from lozenge.detector.loader import LoadedDetector
from lozenge.detector.manifest import Manifest
from lozenge.job.identity import Identity
from lozenge.job.settings import JobSettings
from tests.streams import AUTH

TOPICS = Topics(prefix="fraud.")
LIVE = Identity("spotter", "r2", live=True, key="card", topics=TOPICS, stream=AUTH)
SHADOW = replace(LIVE, live=False)


def test_the_group_of_a_live_job_is_the_detectors_and_that_of_another_names_its_release() -> None:
    assert (LIVE.app, SHADOW.app) == ("spotter", "spotter@r2")


def test_a_job_that_is_not_live_writes_no_topic_of_the_live_one() -> None:
    def written(job: Identity) -> set[str]:
        return {topic.name for topic in job.own_topics()} | {job.alerts, job.dead_letters, job.state, job.changelog}

    assert not written(LIVE) & written(SHADOW)
    assert not written(SHADOW) & written(replace(SHADOW, release="r3"))
    assert LIVE.coverage is not None
    assert SHADOW.coverage is None, "only a live job may say what was processed"


def test_all_of_its_topics_have_the_prefix_and_a_contract() -> None:
    for job in (LIVE, SHADOW):
        contracts = {topic.name for topic in job.own_topics()}
        assert {job.alerts, job.dead_letters, job.state} <= contracts
        assert all(name.startswith("fraud.") for name in contracts | {job.input})


@pytest.mark.parametrize("key", ["card", "account", "merchant", "terminal"])
def test_its_input_is_the_copy_of_the_events_with_its_key(key: str) -> None:
    inputs = {replace(LIVE, key=other).input for other in ("card", "account", "merchant", "terminal")}
    assert len(inputs) == 4
    assert replace(LIVE, key=key).input == replace(SHADOW, key=key).input == AUTH.events(TOPICS, key)


def test_the_id_of_an_alert_is_the_same_in_each_release_and_live_or_not() -> None:
    id = LIVE.alert_id("card_1", "e1")
    assert id == SHADOW.alert_id("card_1", "e1") == replace(LIVE, release="r9").alert_id("card_1", "e1")
    assert len({id, LIVE.alert_id("card_1", "e2"), LIVE.alert_id("card_2", "e1")}) == 3
    assert id != replace(LIVE, detector="other").alert_id("card_1", "e1")
    assert id != replace(LIVE, key="account").alert_id("card_1", "e1")


def test_it_is_that_of_the_detector_and_of_its_start(tmp_path: Path) -> None:
    detect: Any = None
    manifest = Manifest.model_validate({"kind": "rule", "owner": "tests", "title": "A test", "key": "merchant"})
    loaded = LoadedDetector("one", "1.0.0", Detector(detect, settings=Settings), manifest, tmp_path, AUTH)
    found = Identity.of(loaded, JobSettings(release="r5", live=False), TOPICS)
    assert found == Identity("one", "r5", live=False, key="merchant", topics=TOPICS, stream=AUTH)

"""Who reads the alerts of a detector: the deployed releases say so."""

from types import SimpleNamespace
from typing import Any

import pytest

from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.control.deployments_view import Deployment
from lozenge_deploy.control.records import DeploymentSpec, Goal
from lozenge_deploy.releases import alert_readers
from lozenge_deploy.releases.alert_readers import readers_of
from tests.alert_streams import LARGE
from tests.deploy.releases.test_release import release

KAFKA = KafkaSettings(bootstrap="127.0.0.1:1")


class Deployed:
    """What is deployed, in memory."""

    def __init__(self, kafka: KafkaSettings) -> None: ...

    def __enter__(self) -> "Deployed":
        return self

    def __exit__(self, *_: object) -> None: ...

    def all(self) -> dict[str, Deployment]:
        goals = {"large_amount": Goal.RUNNING, "series": Goal.PAUSED, "other": Goal.RUNNING, "gone": Goal.RETIRED}
        return {
            name: Deployment(DeploymentSpec(detector=name, revision="1", release="r7", goal=goal), None)
            for name, goal in goals.items()
        }


def test_readers_are_those_whose_release_reads_the_alerts_unless_they_are_retired(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = {name: release(detector=name, stream=LARGE) for name in ("series", "gone")}
    kept |= {name: release(detector=name) for name in ("large_amount", "other")}
    named: Any = lambda names: {name: kept[name] for name in names}  # noqa: E731
    monkeypatch.setattr(alert_readers, "Deployments", Deployed)
    monkeypatch.setattr(alert_readers, "Releases", lambda kafka: SimpleNamespace(named=named))
    assert [each.detector for each in readers_of(KAFKA, "large_amount")] == ["series"]
    assert readers_of(KAFKA, "other") == []

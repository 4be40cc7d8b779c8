"""`lozenge describe`."""

import json
import re
from functools import partial
from pathlib import Path

import pytest

from lozenge.kafka.topic_admin import partitions
from lozenge_deploy.control import deployments_view
from tests.deploy.cli.conftest import made
from tests.deploy.command import invoke


def test_describe_names_the_topics(checkout: Path) -> None:
    made(checkout, "spotter", "aggregate")
    run = invoke("describe", "spotter", "-o", "json", cwd=checkout, LOZENGE_KAFKA_BOOTSTRAP="127.0.0.1:9")
    [facts] = json.loads(run.stdout)
    assert (facts["kind"], facts["alerts"], facts["lateness"]) == ("aggregate", "pay.alerts.spotter.v1", "10m")
    assert (facts["state"], facts["state topic"]) == ("keep", "lozenge.state.spotter.v1")
    assert facts["live"].startswith("unknown: listing topics: no Kafka broker answers")
    assert "pay.dlq.spotter.v1" in invoke("describe", "spotter", cwd=checkout).stdout


@pytest.mark.parametrize("verb", ["describe", "check", "test", "deploy", "try"])
@pytest.mark.parametrize("name", ["upstream", "downstream", "nobody", "No-Body", "json", "../up"])
def test_the_hint_for_a_detector_that_is_not_there_can_be_followed(
    checkout: Path, verb: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployments_view, "partitions", partial(partitions, timeout=0.2))  # nobody answers later either
    run = invoke(verb, name, cwd=checkout, LOZENGE_KAFKA_BOOTSTRAP="127.0.0.1:9")
    assert run.returncode == 2, run.stderr
    hint = run.stderr.partition("->")[2]
    assert ("`lozenge new nobody`" in hint) is (name == "nobody")
    assert ("is a stage of the platform" in hint) is (name in ("upstream", "downstream"))
    for command in re.findall(r"`lozenge (new [^`]+)`", hint):
        assert invoke(*command.split(), "--dry-run", cwd=checkout).returncode == 0

"""`lozenge describe`."""

import json
from pathlib import Path

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

"""What a plan, a dry run and a backtest say of a folder before it is deployed, by the command. No agent runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from lozenge.kafka.settings import KafkaSettings
from lozenge.kafka.topic_admin import partitions
from lozenge_deploy.releases.release_store import Releases
from tests.deploy.command import invoke
from tests.deploy.sparkless_environments import install
from tests.integration.deploy.sources import quick_detector
from tests.integration.harness import event, send

pytestmark = pytest.mark.usefixtures("cache")


def test_dry_runs_and_plans_change_nothing_and_say_what_would_be(kafka: KafkaSettings, tmp_path: Path) -> None:
    install(quick_detector(tmp_path, "planned", "rule"), tested=False)
    here: dict[str, Any] = {"cwd": tmp_path, **kafka.variables}
    run = invoke("deploy", "planned", "--dry-run", "-o", "json", **here)
    assert run.returncode == 0, run.stderr
    [answer] = json.loads(run.stdout)
    assert (answer["status"], answer["changes"][0]) == (None, {"field": "release", "current": None, "new": "r1"})

    send(kafka, [event(n, card=f"planned_{n}", amount="7000.00") for n in range(5)])
    run = invoke("plan", "planned", "-o", "json", **here)
    assert run.returncode == 0, run.stderr
    [answer] = json.loads(run.stdout)
    assert {f"planned_{n}" for n in range(5)} <= {alert["entity"] for alert in answer["backtest"]["new"]}
    assert answer["cost"]["new"] is not None
    assert (answer["cost"]["current"], answer["cost"]["ratio"], answer["refusal"]) == (None, None, None)

    run = invoke("try", "planned", "--last", "10m", "--set", "limit=7000", "-o", "json", **here)
    assert run.returncode == 0, run.stderr
    [answer] = json.loads(run.stdout)
    assert (answer["events"], answer["alerts"], answer["new"]) == (5, 0, [])
    run = invoke("try", "planned", "--set", "limit=a lot", **here)
    assert (run.returncode, "limit" in run.stderr) == (2, True)
    assert not [topic for topic in partitions(kafka) if "planned" in topic]
    assert Releases(kafka).of("planned") == []

    run = invoke("deploy", "planned", "--no-wait", **here)
    assert (run.returncode, "is pending" in run.stdout) == (0, True), run.stderr
    run = invoke("status", "-o", "json", **here)
    [row] = [row for row in json.loads(run.stdout) if row["app"] == "planned"]
    assert (row["goal"], row["phase"], row["reason"]) == ("running", "pending", "no agent has picked it up")
    run = invoke("describe", "planned", "-o", "json", **here | {"cwd": tmp_path.parent})
    [facts] = json.loads(run.stdout)
    assert (facts["deployed"], facts["live"], facts["defaults"]) == ("r1", None, {"limit": "500"})

    run = invoke("plan", "planned", "--set", "limit=9000", **here)
    assert run.returncode == 0, run.stderr
    assert "setting limit  -" in run.stdout
    assert "r1 takes" in run.stdout


def test_the_deployment_of_a_detector_creates_its_lists_and_their_overview_names_it(
    kafka: KafkaSettings, tmp_path: Path
) -> None:
    folder, name = quick_detector(tmp_path, "listing", "rule"), "cards_of_listing"
    with (folder / "pyproject.toml").open("a") as manifest:
        manifest.write(f'\n[tool.lozenge.tables]\nblocked = {{ list = "{name}" }}\n')
    install(folder)
    here: dict[str, Any] = {"cwd": tmp_path, **kafka.variables}
    assert invoke("list", "ls", name, **here).returncode == 2
    run = invoke("deploy", "listing", "--no-wait", **here)
    assert run.returncode == 0, run.stderr
    run = invoke("list", "add", name, "card_1", "--reason", "stolen", **here)
    assert run.returncode == 0, run.stderr
    [row] = [row for row in json.loads(invoke("list", "ls", "-o", "json", **here).stdout) if row["list"] == name]
    assert (row["entries"], row["used_by"]) == (1, ["listing"])

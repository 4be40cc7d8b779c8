"""What a deployment would change, on a real broker, with releases that uv builds. No agent runs."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from lozenge.detector.loader import from_folder
from lozenge.errors import ConfigError, DetectorError, ToolchainError, UsageError
from lozenge.job.tools import describe
from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.control.client import Control
from lozenge_deploy.control.records import HistoryEvent
from lozenge_deploy.operations import change_plan
from lozenge_deploy.operations.change_plan import plan_rollback, plan_settings
from lozenge_deploy.operations.deploy_plan import DeployPlan
from lozenge_deploy.operations.deploy_plan import prepare as prepare_built
from lozenge_deploy.releases.release_store import Releases
from tests.deploy.sparkless_environments import install
from tests.integration.deploy.sources import quick_detector

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def _forgotten(cache: Path, kafka: KafkaSettings) -> Iterator[None]:
    """Each test begins with no deployment."""
    yield
    producer = Producer(kafka.client())
    for detector in ("deployed_rule", "deployed_fold"):
        for topic in (kafka.topics.control.deployments, kafka.topics.control.status):
            producer.produce(topic, None, detector.encode(), 0)
    assert producer.flush(30) == 0


@pytest.fixture
def sparkless_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folds are described without Spark, which a fold that filters nothing does not need."""
    monkeypatch.setattr(describe, "_fold", lambda loaded, settings: loaded.detector.detect(None, settings, {}))


@pytest.fixture
def control(kafka: KafkaSettings) -> Iterator[Control]:
    with Control(kafka) as found:
        yield found


def prepare(
    folder: Path,
    kafka: KafkaSettings,
    control: Control,
    *,
    state: str | None,
    settings: dict[str, Any],
    tested: bool = False,
) -> DeployPlan:
    """The candidate that `folder` makes, in an environment that uv need not make.

    A fold describes itself here.
    """
    home = install(folder, tested=tested)
    loaded = from_folder(home / "source" / folder.name)
    if loaded.declaration.kind == "stateful":
        (home / "description.json").write_text(describe.describe(loaded).model_dump_json(), "utf-8")
    return prepare_built(folder, kafka, control, state=state, settings=settings)


def edit(folder: Path, old: str, new: str) -> None:
    module = folder / f"{folder.name}.py"
    assert old in module.read_text()
    module.write_text(module.read_text().replace(old, new))


def released(control: Control, candidate: DeployPlan) -> Any:
    return control.apply(candidate.commit(watch=60, message="", by="me"))


def row(candidate: DeployPlan, field: str) -> tuple[Any, Any]:
    [found] = [row for row in candidate.changes() if row["field"] == field]
    return found["current"], found["new"]


def nothing(_: str) -> None:
    """No other detector is deployed."""


def elsewhere(*_: object) -> Path:
    raise ToolchainError("no such Python", hint="install one")


def test_an_unchanged_folder_deploys_as_the_same_release(
    kafka: KafkaSettings, control: Control, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = quick_detector(tmp_path, "deployed_rule", "rule")
    first = prepare(folder, kafka, control, state=None, settings={"limit": 400})
    assert [r["field"] for r in first.changes()] == ["release", "setting limit", "offsets"]
    assert row(first, "offsets")[1] == "starts at the earliest retained event"
    present = released(control, first)
    assert (present.release, present.settings, present.before) == ("r1", {"limit": 400}, None)

    tests = folder / "test_deployed_rule.py"
    tests.write_text(
        f"{tests.read_text()}\n\ndef test_runs() -> None:\n    open({str(tmp_path / 'ran')!r}, 'a').write('x')\n"
    )
    again = prepare(folder, kafka, control, state=None, settings={})
    again = prepare(folder, kafka, control, state=None, settings={})
    assert (tmp_path / "ran").read_text() == "x", "tests that have passed for this code are not run again"
    wanted = released(control, again)
    assert (wanted.release, wanted.settings) == ("r1", {"limit": 400}), "what is set stays, and tests are no content"
    assert wanted.before.revision == present.revision
    assert [release.name for release in Releases(kafka).of("deployed_rule")] == ["r1"]

    tests.write_text("import time\n\n\ndef test_fires() -> None:\n    time.sleep(3600)\n")
    with pytest.raises(ConfigError, match="limit: "):  # which is known before the tests have ended
        prepare(folder, kafka, control, state=None, settings={"limit": "a lot"})
    tests.write_text("def test_fires() -> None:\n    assert False\n")
    with pytest.raises(DetectorError, match="its tests fail"):
        prepare(folder, kafka, control, state=None, settings={})
    edit(folder, "Decimal(500)", "Decimal(600)")
    with pytest.raises(DetectorError, match="its tests fail"):
        prepare(folder, kafka, control, state=None, settings={})
    with pytest.raises(ConfigError, match="limit: "):
        plan_settings(kafka, present, {"limit": "a lot"}, {})
    fields, rows = plan_settings(kafka, present, {"limit": None}, {"trigger": "500ms"}, rate=100)
    assert (fields["settings"], fields["max_batch"]) == ({}, 50)
    assert [tuple(r.values()) for r in rows] == [
        ("setting limit", 400, "500"),
        ("trigger", "1s", "500ms"),
        ("max_batch", 200_000, 50),
    ]
    monkeypatch.setattr(change_plan, "environment_for", elsewhere)
    fields, rows = plan_settings(kafka, present, {"limit": 300}, {})
    assert fields["settings"] == {"limit": 300}, "it can be set from a machine that cannot run the detector"
    assert [tuple(r.values()) for r in rows] == [
        ("setting limit", 400, 300),
        (
            "check of settings",
            None,
            "by the running job, before they replace the present ones; not here: no such Python",
        ),
    ]
    with pytest.raises(UsageError, match="no other release has ever been live"):
        plan_rollback(kafka, present, [], nothing, to=None, state=None, message="")


@pytest.mark.usefixtures("sparkless_folds")
def test_a_fold_whose_key_changes_is_rebuilt_or_refused(kafka: KafkaSettings, control: Control, tmp_path: Path) -> None:
    folder = quick_detector(tmp_path, "deployed_fold", "stateful")
    released(control, prepare(folder, kafka, control, state=None, settings={}, tested=True))

    edit(folder, 'by="card_id"', 'by=["card_id", "merchant_id"]')
    kept = prepare(folder, kafka, control, state="keep", settings={}, tested=True)
    assert row(kept, "state")[1].startswith("keep: REFUSED")
    with pytest.raises(UsageError, match="keys were made of card_id and are now made of card_id, merchant_id"):
        kept.commit(watch=60, message="", by="me")
    assert len(Releases(kafka).of("deployed_fold")) == 1

    rebuilt = prepare(folder, kafka, control, state="rebuild", settings={}, tested=True)
    assert row(rebuilt, "release") == ("r1", "r2")
    assert row(rebuilt, "state")[1].startswith("rebuild: folds all retained events again")
    wanted = released(control, rebuilt)
    assert (wanted.release, wanted.state, wanted.before.state) == ("r2", "rebuild", "rebuild")

    lived = [HistoryEvent(detector="deployed_fold", what="live", release=release) for release in ("r1", "r2")]
    earlier, rows = plan_rollback(kafka, wanted, lived, nothing, to=None, state=None, message="")
    assert (earlier.release, earlier.state) == ("r1", "rebuild")
    assert rows[-1]["new"].startswith("rebuild")
    with pytest.raises(UsageError, match="its state cannot be kept"):
        plan_rollback(kafka, wanted, lived, nothing, to="r1", state="keep", message="")

    edit(folder, "expires=settings.within", "expires=timedelta(days=30)")
    refused = prepare(folder, kafka, control, state="rebuild", settings={}, tested=True).refusal
    assert refused is not None
    assert "reaches back 30d, but events are retained for 7d" in refused.message


def test_an_input_that_nobody_writes_is_refused(kafka: KafkaSettings, control: Control, tmp_path: Path) -> None:
    folder = quick_detector(tmp_path, "deployed_merchant", "rule")
    project = folder / "pyproject.toml"
    project.write_text(project.read_text().replace('kind = "rule"', 'kind = "rule"\nkey = "merchant"'))
    absent = re.escape(kafka.topics.events("auth", "merchant"))
    with pytest.raises(UsageError, match=f"it reads {absent}, which does not exist"):
        prepare(folder, kafka, control, state=None, settings={})

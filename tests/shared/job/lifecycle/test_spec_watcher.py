"""A new spec is in force at once, and one that is not valid changes nothing."""

from pathlib import Path
from typing import Any

import pytest

from lozenge import Detector, Settings
from lozenge.detector.loader import LoadedDetector
from lozenge.detector.manifest import Manifest
from lozenge.errors import ConfigError, DetectorError
from lozenge.job.effective_config import JobSpecFile
from lozenge.job.lifecycle.spec_watcher import SpecChange, SpecWatcher
from lozenge.job.lifecycle.status_reporter import JobStatusReporter
from lozenge.job.settings import JobSettings
from lozenge.protocol.job_spec import JOB_SPEC, JobSpec
from tests.streams import AUTH


class Limit(Settings):
    limit: float = 100.0


def plannable(settings: Settings) -> None:
    """A check that has no objection."""


def watcher(folder: Path, **spec: Any) -> tuple[SpecWatcher, JobStatusReporter]:
    JobSpec(**spec).write(folder)
    detect: Any = None
    manifest = Manifest.model_validate({"kind": "rule", "owner": "tests", "title": "A test"})
    loaded = LoadedDetector("one", "1.0.0", Detector(detect, settings=Limit), manifest, folder, AUTH)
    reporter = JobStatusReporter(folder)
    return SpecWatcher(loaded, JobSpecFile(JobSettings(folder=folder)), reporter), reporter


def test_a_spec_that_was_not_replaced_is_no_change(tmp_path: Path) -> None:
    specs, _ = watcher(tmp_path, revision="a")
    assert specs.poll(plannable) is None
    assert specs.spec.revision == "a"


def test_a_new_spec_is_in_force_with_its_configuration(tmp_path: Path) -> None:
    specs, _ = watcher(tmp_path, revision="a")
    JobSpec(revision="b", settings={"limit": 5}, max_batch=10).write(tmp_path)
    change = specs.poll(plannable)
    assert change is not None
    assert (change.before.revision, change.after.revision) == ("a", "b")
    assert specs.config.settings.model_dump() == {"limit": 5.0}
    assert specs.config.max_batch == 10
    assert specs.poll(plannable) is None, "a change is found once"


@pytest.mark.parametrize("text", ['{"revision": "b", "settings": {"limit": "much"}}', "no json", '{"unknown": 1}'])
def test_a_spec_that_is_not_valid_is_reported_and_changes_nothing(text: str, tmp_path: Path) -> None:
    specs, reporter = watcher(tmp_path, revision="a", settings={"limit": 5})
    before = specs.config
    (tmp_path / JOB_SPEC).write_text(text)
    assert specs.poll(plannable) is None
    assert (specs.spec.revision, specs.config) == ("a", before)
    assert reporter.status.rejected


def test_settings_that_the_detector_refuses_are_reported_and_change_nothing(tmp_path: Path) -> None:
    def refusing(settings: Settings) -> None:
        assert isinstance(settings, Limit)
        if settings.limit < 0:
            raise DetectorError("planning one: detect() raised ValueError: no limit is negative", hint="set another")

    specs, reporter = watcher(tmp_path, revision="a", settings={"limit": 5})
    before = specs.config
    JobSpec(revision="b", settings={"limit": -1}, generation=7).write(tmp_path)
    assert specs.poll(refusing) is None
    assert (specs.spec.revision, specs.config) == ("a", before)
    assert "no limit is negative" in reporter.status.rejected
    assert reporter.status.revision == "b", "so its sender knows which spec was rejected"
    JobSpec(revision="c", settings={"limit": 6}).write(tmp_path)
    assert specs.poll(refusing) is not None, "the next one is not rejected with it"


def test_settings_that_stay_are_not_asked_about(tmp_path: Path) -> None:
    def never(settings: Settings) -> None:
        raise AssertionError("these settings are in force already")

    specs, _ = watcher(tmp_path, revision="a", settings={"limit": 5})
    JobSpec(revision="b", settings={"limit": 5.0}, max_batch=7).write(tmp_path)
    assert specs.poll(never) is not None
    assert specs.config.max_batch == 7


def test_a_job_does_not_start_with_a_spec_that_is_not_valid(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="limit"):
        watcher(tmp_path, settings={"limit": "much"})


@pytest.mark.parametrize(
    ("before", "after", "cuts_over"),
    [
        (JobSpec(standby=True), JobSpec(), True),
        (JobSpec(standby=True), JobSpec(standby=True), False),
        (JobSpec(standby=True), JobSpec(shared=True), False),
        (JobSpec(), JobSpec(), False),
    ],
)
def test_a_standby_that_is_made_the_only_live_job_cuts_over(before: JobSpec, after: JobSpec, cuts_over: bool) -> None:
    assert SpecChange(before, after).cuts_over is cuts_over

"""How a job starts, from its environment; and the settings of its detector, with every problem at once."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from lozenge import Detector, Settings
from lozenge.detector.loader import LoadedDetector
from lozenge.detector.manifest import Manifest
from lozenge.errors import ConfigError
from lozenge.job.settings import JobSettings, detector_settings
from tests.streams import AUTH


class Limits(Settings):
    amount: float = Field(default=100.0, gt=0)
    span: timedelta = timedelta(minutes=10)
    countries: frozenset[str] = frozenset({"DE"})


def loaded(settings: type[Settings] = Limits) -> LoadedDetector:
    detect: Any = None
    manifest = Manifest.model_validate({"kind": "rule", "owner": "tests", "title": "A test"})
    return LoadedDetector("one", "1.0.0", Detector(detect, settings=settings), manifest, Path(), AUTH)


def test_values_take_the_place_of_defaults_as_people_write_them() -> None:
    found = detector_settings(loaded(), {"amount": 5, "countries": ["FR", "FR"]})
    assert found == Limits(amount=5.0, countries=frozenset({"FR"}))
    assert detector_settings(loaded(), {}) == Limits()


def test_every_problem_of_the_values_is_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        detector_settings(loaded(), {"amount": -1, "span": "soon", "limit": 7})
    said = str(caught.value)
    assert "reading the settings of one: 3 problem(s)" in said
    assert "limit: there is no such setting" in said
    assert "amount: " in said
    assert "span: " in said
    assert "its settings are amount, span, countries; nothing was changed" in said


def test_a_detector_without_settings_says_so() -> None:
    with pytest.raises(ConfigError, match="its settings are none"):
        detector_settings(loaded(Settings), {"limit": 7})


def test_the_start_is_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RELEASE": "r7", "LIVE": "false", "CORES": "3", "HOST": "/hosts/h1"}.items():
        monkeypatch.setenv(f"LOZENGE_JOB_{name}", value)
    job = JobSettings.load()
    assert (job.release, job.live, job.cores, job.host) == ("r7", False, 3, Path("/hosts/h1"))


@pytest.mark.parametrize(
    ("name", "value"),
    [("CORES", "0"), ("MEMORY_MB", "100"), ("STATE", "lost"), ("GENERATION", "newest"), ("SHORT_BATCHES", "-1")],
)
def test_a_start_that_cannot_be_is_refused_by_its_variable(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"LOZENGE_JOB_{name}", value)
    with pytest.raises(ConfigError, match=f"LOZENGE_JOB_{name}"):
        JobSettings.load()


def test_the_name_of_a_start_is_of_its_process_unless_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(os.getpid()) in JobSettings.load().instance
    monkeypatch.setenv("LOZENGE_JOB_INSTANCE", "g7")
    assert JobSettings.load().instance == "g7"


def test_releases_keep_their_files_apart_unless_a_folder_belongs_to_the_job_alone() -> None:
    kept = {JobSettings(release=release).own_folder(app) for release in ("r1", "r2") for app in ("a", "b")}
    assert len(kept) == 4
    alone = JobSettings(release="r1", folder=Path("/jobs/g7"))
    assert alone.own_folder("a") == Path("/jobs/g7")


def test_only_a_live_job_keeps_the_last_good_tables_over_a_restart() -> None:
    job = JobSettings(folder=Path("/jobs/g7"))
    assert job.tables_folder("a") == Path("/jobs/g7/tables")
    assert job.model_copy(update={"live": False}).tables_folder("a") is None

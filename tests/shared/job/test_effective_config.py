"""The job spec in a folder, and the configuration that it makes of a detector's manifest."""

from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from lozenge.detector.loader import from_folder
from lozenge.errors import ConfigError
from lozenge.job import effective_config
from lozenge.job.effective_config import EffectiveConfig, JobSpecFile
from lozenge.job.settings import JobSettings
from lozenge.protocol.job_spec import JOB_SPEC, JobSpec, read_job_spec

LOADED = from_folder(Path(__file__).parents[3] / "detectors" / "large_amount")
FULL = JobSpec(
    revision="one",
    generation=7,
    standby=True,
    settings={"limit": 3},
    max_batch=500,
    trigger=timedelta(milliseconds=1500),
)


def test_a_spec_is_read_as_it_was_written(tmp_path: Path) -> None:
    FULL.write(tmp_path)
    assert read_job_spec(tmp_path) == FULL
    assert [p.name for p in tmp_path.iterdir()] == [JOB_SPEC]


def test_a_newer_spec_is_returned_once(tmp_path: Path) -> None:
    FULL.write(tmp_path)
    file = JobSpecFile(JobSettings(folder=tmp_path))
    assert (file.current, file.newer()) == (FULL, None)
    newer = FULL.model_copy(update={"standby": False, "generation": 8})
    newer.write(tmp_path)
    assert file.newer() == newer
    assert (file.newer(), file.current) == (None, newer)


def test_a_spec_written_while_the_first_is_read_is_not_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = FULL.model_copy(update={"generation": 8})
    FULL.write(tmp_path)

    def read_slowly(folder: Path) -> JobSpec:
        spec = read_job_spec(folder)
        newer.write(folder)
        return spec

    monkeypatch.setattr(effective_config, "read_job_spec", read_slowly)
    file = JobSpecFile(JobSettings(folder=tmp_path))
    monkeypatch.undo()
    assert file.current == FULL
    assert file.newer() == newer


@pytest.mark.parametrize("text", ["", "{", '{"unheard": 1}', '{"max_batch": 0}', '{"trigger": "0s"}', '{"trigger": 7}'])
def test_an_invalid_spec_changes_nothing(tmp_path: Path, text: str) -> None:
    FULL.write(tmp_path)
    file = JobSpecFile(JobSettings(folder=tmp_path))
    (tmp_path / JOB_SPEC).write_text(text)
    with pytest.raises(ConfigError, match="reading the job spec"):
        file.newer()
    assert file.current == FULL
    assert file.newer() is None  # the error is raised once


def test_a_folder_without_a_spec_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="reading the job spec"):
        JobSpecFile(JobSettings(folder=tmp_path))


def test_without_a_folder_the_spec_is_that_of_the_environment_and_stays() -> None:
    file = JobSpecFile(JobSettings(generation=3, settings='{"limit": 3}'))
    assert file.current == JobSpec(generation=3, settings={"limit": 3})
    assert file.newer() is None


def test_a_spec_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        FULL.generation = 8


def test_a_spec_overrides_settings_trigger_and_batch_size() -> None:
    config = EffectiveConfig.of(
        LOADED, JobSpec(settings={"default_limit": 3}, trigger=timedelta(seconds=9), max_batch=7)
    )
    assert (config.settings.model_dump()["default_limit"], config.trigger, config.max_batch) == (
        3,
        timedelta(seconds=9),
        7,
    )


def test_without_overrides_the_manifest_holds() -> None:
    config = EffectiveConfig.of(LOADED, JobSpec())
    assert (config.trigger, config.max_batch) == (LOADED.declaration.trigger, LOADED.declaration.max_batch)
    assert config.settings == LOADED.detector.settings()


def test_every_problem_of_the_settings_is_named() -> None:
    with pytest.raises(ConfigError) as raised:
        EffectiveConfig.of(LOADED, JobSpec(settings={"default_limit": "much", "unheard": 1}))
    assert [problem.split(":")[0] for problem in raised.value.problems] == ["default_limit", "unheard"]

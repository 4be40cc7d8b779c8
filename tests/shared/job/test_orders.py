"""Orders in a folder: each is heard once, and none that cannot be read is obeyed."""

from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from lozenge.errors import ConfigError
from lozenge.job.settings import JobSettings
from lozenge.protocol import job_spec as orders_module
from lozenge.protocol.job_spec import ORDER, JobSpec, JobSpecFile, read_job_spec

FULL = JobSpec(
    revision="one",
    generation=7,
    standby=True,
    settings={"limit": 3},
    max_batch=500,
    trigger=timedelta(milliseconds=1500),
)


def test_an_order_is_read_as_it_was_given(tmp_path: Path) -> None:
    FULL.give(tmp_path)
    assert read_job_spec(tmp_path) == FULL
    assert [p.name for p in tmp_path.iterdir()] == [ORDER]


def test_a_newer_order_is_told_once(tmp_path: Path) -> None:
    FULL.give(tmp_path)
    orders = JobSpecFile(JobSettings(folder=tmp_path))
    assert (orders.current, orders.newer()) == (FULL, None)
    newer = FULL.model_copy(update={"standby": False, "generation": 8})
    newer.give(tmp_path)
    assert orders.newer() == newer
    assert (orders.newer(), orders.current) == (None, newer)


def test_an_order_that_comes_while_the_first_is_read_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = FULL.model_copy(update={"generation": 8})
    FULL.give(tmp_path)

    def read_slowly(folder: Path) -> JobSpec:
        order = read_job_spec(folder)
        newer.give(folder)
        return order

    monkeypatch.setattr(orders_module, "read_job_spec", read_slowly)
    orders = JobSpecFile(JobSettings(folder=tmp_path))
    monkeypatch.undo()
    assert orders.current == FULL
    assert orders.newer() == newer


@pytest.mark.parametrize("text", ["", "{", '{"unheard": 1}', '{"max_batch": 0}', '{"trigger": "0s"}', '{"trigger": 7}'])
def test_what_is_no_order_changes_nothing(tmp_path: Path, text: str) -> None:
    FULL.give(tmp_path)
    orders = JobSpecFile(JobSettings(folder=tmp_path))
    (tmp_path / ORDER).write_text(text)
    with pytest.raises(ConfigError, match="reading the order"):
        orders.newer()
    assert orders.current == FULL
    assert orders.newer() is None  # it is told once


def test_a_folder_without_an_order_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="reading the order"):
        JobSpecFile(JobSettings(folder=tmp_path))


def test_without_a_folder_the_order_is_that_of_the_environment_and_stays() -> None:
    orders = JobSpecFile(JobSettings(generation=3, settings='{"limit": 3}'))
    assert orders.current == JobSpec(generation=3, settings={"limit": 3})
    assert orders.newer() is None


def test_an_order_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        FULL.generation = 8

"""A changed routing file takes effect; one that is wrong does not."""

import os
from pathlib import Path

import pytest

from lozenge_downstream.routing import config as routing_file
from lozenge_downstream.routing.config_reload import ConfigReload
from tests.downstream.conftest import SECRET
from tests.downstream.routing.files import routing


def test_an_unexpected_error_leaves_the_old_file_in_force_and_quotes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lozenge_downstream.routing.config_reload.POLL_SECONDS", 0.0)
    routing(tmp_path, "[rate_limit]\nalerts = 5\n")
    reloading = ConfigReload(tmp_path / "routing.toml")

    def fail(raw: object) -> None:
        raise ArithmeticError(SECRET)

    monkeypatch.setattr(routing_file, "_cross_references", fail)
    (tmp_path / "routing.toml").write_text("[rate_limit]\nalerts = 7\n")
    assert not reloading.reload()
    assert reloading.current.rate_limit.alerts == 5
    assert "it cannot be read: ArithmeticError" in reloading.problem
    assert SECRET not in reloading.problem


def test_a_new_file_replaces_the_old_one_and_a_wrong_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lozenge_downstream.routing.config_reload.POLL_SECONDS", 0.0)
    routing(tmp_path, "[rate_limit]\nalerts = 5\n")
    file = tmp_path / "routing.toml"
    reloading = ConfigReload(file)
    assert not reloading.reload()
    file.write_text("[rate_limit]\nalerts = 7\n")
    assert reloading.reload()
    assert reloading.current.rate_limit.alerts == 7
    for wrong in ("[rate_limit]\nalerts = 0\n", "not toml", "", "# nothing\n"):
        file.write_text(wrong)
        assert not reloading.reload()
        assert reloading.current.rate_limit.alerts == 7
        assert reloading.problem
    file.unlink()
    assert not reloading.reload()
    os.symlink(tmp_path / "other.toml", file)
    (tmp_path / "other.toml").write_text("[rate_limit]\nalerts = 9\n")
    assert reloading.reload()
    assert (reloading.current.rate_limit.alerts, reloading.problem) == (9, "")

"""The notifier's settings name the variable that is wrong."""

import pytest

from lozenge.errors import ConfigError
from lozenge_downstream.settings import NotifierSettings


def test_settings_name_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOZENGE_DOWNSTREAM_KEEP_DAYS", "0")
    with pytest.raises(ConfigError, match="LOZENGE_DOWNSTREAM_KEEP_DAYS: "):
        NotifierSettings.load()


def test_an_address_that_cannot_be_one_is_a_problem_of_the_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOZENGE_DOWNSTREAM_BIND", "127.0.0.1:99999")
    with pytest.raises(ConfigError, match="BIND: a port is at most 65535"):
        NotifierSettings.load()

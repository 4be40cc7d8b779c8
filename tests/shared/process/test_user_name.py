"""Who runs a process has a name, or else a number."""

import os
from typing import NoReturn

import pytest

from lozenge.process.user_name import user_name


@pytest.mark.parametrize("error", [KeyError("getpwuid(): uid not found: 1000550000"), OSError("No username set")])
def test_a_user_without_a_name_is_a_number(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> NoReturn:
        raise error

    monkeypatch.setattr("getpass.getuser", nobody)
    assert user_name() == str(os.getuid())

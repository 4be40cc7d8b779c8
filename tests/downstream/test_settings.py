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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOKEN", "schlüssel"),
        ("TOKEN", "a\tb"),
        ("PUBLIC_URL", "javascript:alert(1)"),
        ("PUBLIC_URL", "ops.example.com"),
    ],
)
def test_a_token_or_address_that_no_client_can_use_is_refused_unseen(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"LOZENGE_DOWNSTREAM_{name}", value)
    with pytest.raises(ConfigError, match=f"LOZENGE_DOWNSTREAM_{name}: ") as caught:
        NotifierSettings.load()
    assert value not in str(caught.value)


def test_an_address_for_feedback_pages_without_the_secret_of_their_links_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOZENGE_DOWNSTREAM_PUBLIC_URL", "https://ops.example.com")
    with pytest.raises(ConfigError, match="without LINK_SECRET, which signs them"):
        NotifierSettings.load()
    monkeypatch.setenv("LOZENGE_DOWNSTREAM_LINK_SECRET", "a secret of sixteen")
    assert NotifierSettings.load().public_url == "https://ops.example.com"

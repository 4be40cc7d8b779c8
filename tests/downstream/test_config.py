"""The routing file: every problem at once, secrets never shown."""

from pathlib import Path

import pytest

from lozenge.errors import ConfigError
from lozenge_downstream import config

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def routing(tmp_path: Path, text: str) -> config.Routing:
    file = tmp_path / "routing.toml"
    file.write_text(text)
    return config.routing(file)


def test_without_routes_every_webhook_gets_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPS", SECRET)
    read = routing(tmp_path, '[webhooks.ops]\nurl = "http://127.0.0.1:1/"\nsecret = { env = "OPS" }\n')
    assert [(r.name, r.webhooks, r.detectors, r.severity) for r in read.routes] == [("default", ("ops",), None, None)]


def test_a_secret_in_a_file_appears_nowhere(tmp_path: Path) -> None:
    (tmp_path / "ops").write_text(SECRET + "\n")
    read = routing(tmp_path, f'[webhooks.ops]\nurl = "http://h/"\nsecret = {{ file = "{tmp_path / "ops"}" }}\n')
    assert read.webhooks["ops"].secret.resolve().get_secret_value() == SECRET
    assert SECRET not in repr(read)
    assert SECRET not in str(read.model_dump())


def test_every_problem_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHORT", "whsec_c2hvcnQ=")
    monkeypatch.setenv("NOISE", "%%%")
    with pytest.raises(ConfigError) as caught:
        routing(
            tmp_path,
            """
            [webhooks.a]
            url = "ftp://example.com/"
            secret = { env = "NOT_SET_ANYWHERE" }
            timeout = -1
            [webhooks.b]
            url = "http://h/"
            secret = { env = "SHORT" }
            [webhooks.c]
            url = "http://h/"
            secret = { env = "NOISE" }
            colour = "red"
            [webhooks.d]
            url = "http://h/"
            secret = { file = "no-such-file" }
            [[routes]]
            name = "r"
            webhooks = ["a", "nobody"]
            severity = "dire"
            [[routes]]
            name = "r"
            webhooks = []
            """,
        )
    told = "\n".join(caught.value.problems)
    for part in (
        "webhooks.a.url",
        "NOT_SET_ANYWHERE is not set",
        "webhooks.a.timeout",
        "SHORT holds 5 bytes",
        "NOISE does not hold a base64 secret",
        "webhooks.c.colour",
        "no-such-file: No such file",
        "'dire' is none of info, low",
        "there is no [webhooks.nobody]",
        "'r' is the name of an earlier route",
    ):
        assert part in told
    assert "%%%" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_broken_toml_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="at line 2"):
        routing(tmp_path, "[webhooks]\na = }\n")


def test_a_secret_is_one_reference(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="say either"):
        routing(tmp_path, '[webhooks.a]\nurl = "http://h/"\nsecret = {}\n')


def test_settings_name_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOZENGE_DOWNSTREAM_KEEP_DAYS", "0")
    with pytest.raises(ConfigError, match="LOZENGE_DOWNSTREAM_KEEP_DAYS: "):
        config.Settings.load()

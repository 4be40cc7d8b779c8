"""The notifier's API from outside, and its routing file by its own program: a stage is used, never imported."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
from pydantic import SecretStr
from pydantic_settings import SettingsConfigDict

from lozenge.errors import LozengeError, Retryable, UsageError
from lozenge.process.env_settings import FromEnvironment

TIMEOUT_SECONDS = 30.0
_NOT_FOUND, _INVALID = 404, 422


class NotifierUnavailable(Retryable):
    """No notifier answers where one should."""

    exit_code = 3


class NotifierSettings(FromEnvironment):
    """Where its API is, and the token that it wants."""

    model_config = SettingsConfigDict(env_prefix="LOZENGE_NOTIFIER_")

    url: str = "http://127.0.0.1:8470"
    token: SecretStr | None = None


def ask(method: str, path: str, body: Mapping[str, Any] | None = None, *, dry_run: bool = False) -> Any:
    """What the notifier answers; in a dry run it changes nothing.

    Raises UsageError or LozengeError with what it says, or NotifierUnavailable.
    """
    settings = NotifierSettings.load()
    doing = f"asking the notifier at {settings.url}"
    headers = {"authorization": f"Bearer {settings.token.get_secret_value()}"} if settings.token else {}
    try:
        answer = httpx2.request(
            method,
            settings.url.rstrip("/") + path + ("?dry_run" if dry_run else ""),
            json=body,
            headers=headers,
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
        )
        said = answer.json()
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise NotifierUnavailable(
            f"{doing}: {error}", hint="does it run with LOZENGE_DOWNSTREAM_BIND? LOZENGE_NOTIFIER_URL says where"
        ) from error
    except ValueError as error:
        raise NotifierUnavailable(f"{doing}: that is no notifier", hint="set LOZENGE_NOTIFIER_URL") from error
    if answer.is_success:
        return said
    kind = UsageError if answer.status_code in (_NOT_FOUND, _INVALID) else LozengeError
    raise kind(str(said.get("error")), hint=str(said.get("hint") or ""))


def in_path(text: str) -> str:
    """One part of a path, whatever it holds; dots too, which would be taken for the folder above."""
    return quote(text, safe="").replace(".", "%2E")


def routing(*arguments: str | Path) -> tuple[int, Any]:
    """The exit code and the JSON of `python -m lozenge_downstream.routing`; raises UsageError if it has none."""
    command = [sys.executable, "-m", "lozenge_downstream.routing", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        message, _, hint = done.stderr.strip().partition("\n  -> ")
        raise UsageError(message or "the routing program said nothing", hint=hint) from None
